"""The data that a run began with, kept beside its log: `data.json`.

What a run does with data depends on their counts, on the visit at which each successor was first seen, and on the sums
of rewards. These are kept, not the rows: the file is as large as the model, whatever the data were, and the run is
resumed, verified and exported without them. The manifest says where they came from. The file has these fields:

| field | |
|---|---|
| `states` | [kind, key] of the states after those known beforehand: "reset", "live", "final" or "crash" |
| `discovered` | numbers of the live states, in the order in which the data have them |
| `state`, `action`, `visits` | [R] the pairs with samples |
| `rewards`, `squares` | [R] the sums of their rewards, and of the squares |
| `pair`, `next_state`, `count` | [T] what they led to; `pair` is a place in [R] |
| `first` | [T] the visit at which that was first seen; -m: at visit m or before; 0: not known |
| `unknown` | [state, action, number, last place] of pairs with samples of unknown outcome; left out if there are none |
| `actions`, `room` | keys of action values, where only a function knows them; how many actions the model has room for |
| `ended` | whether an episode was seen to end |
| `given` | what guarantees take for granted |

Files written earlier have, in the place of `ended`, `restarts`: the resets that began another trajectory.

States are numbered as in the model: first those known beforehand, then `states`. Pairs are in the order in which they
were last changed, successors in that of their first appearance.
"""

import hashlib
import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.beginning import (
    APART,
    OF_BEFORE,
    UNSELECTED,
    VOUCHED,
    Beginning,
    enable_known,
    level_ranks,
    num_samples,
)
from gosprl.collecting.record import ANY_REWARD
from gosprl.collecting.sharing import ASSUMED
from gosprl.errors import GosprlError, InputError
from gosprl.model import counted
from gosprl.model.content import Content, thaw
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.origins import within
from gosprl.model.space import FEW_ACTIONS, UNSAID
from gosprl.model.states import CRASH
from gosprl.printing import printable
from gosprl.runs.files import MIB, Damaged, canonical, digest_of, read_json, write_json
from gosprl.runs.keys import key_of, text_of
from gosprl.runs.manifests import BY_DATA, DATA
from gosprl.runs.places import Place
from gosprl.systems.base import System

MOST_KEPT = 10**6  # different transitions
SHOWN = 5  # sources that a text names
MOST_BYTES = 256 * MIB
KINDS = ("reset", "live", "final", "crash")
OF_PAIRS, OF_TRANSITIONS = ("state", "action", "visits"), ("pair", "next_state", "count", "first")
REWARDS = ("rewards", "squares")
FIELDS = {"states", "discovered", "actions", "room", "ended", "given", *OF_PAIRS, *REWARDS, *OF_TRANSITIONS}
EARLIER_FIELDS = FIELDS - {"ended"} | {"restarts"}
UNKNOWN = "unknown"

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class KeptData(Beginning):
    """The data that a run began with.

    Parameters
    ----------
    entry
        What the manifest says of them: `order`, `samples`, `sources` and `counts`, the digest of the file.
    counts
        What the file says.
    """

    entry: Mapping[str, Any]
    counts: Mapping[str, Any]

    @classmethod
    def of(cls, data: Beginning, model: EmpiricalModel) -> "KeptData":
        """Return what is kept of data that a model has counted, and nothing else."""
        counts = counts_described(model)
        stored, content = len(counts["pair"]), canonical(counts)
        if stored > MOST_KEPT or len(content) > MOST_BYTES:
            raise InputError(
                f"data, out: expected data of at most {MOST_KEPT:,} different transitions and {MOST_BYTES:,} bytes, "
                f"which are kept with the run, got {stored:,} and {len(content):,}; leave out `out`"
            )
        told = {"samples": num_samples(model), "counts": hashlib.sha256(content).hexdigest(), "streams": BY_DATA}
        return cls({**data.described(), **told}, counts)

    @classmethod
    def read(cls, directory: Place, manifest: Mapping[str, Any]) -> "KeptData":
        """Read the data of a run; `Damaged` if they are not those that the manifest names."""
        entry = manifest["data"]
        try:
            counts = read_json(directory / DATA, MOST_BYTES, root=directory)
        except FileNotFoundError:
            raise Damaged(DATA, None, "is missing") from None
        if digest_of(counts) != entry["counts"]:
            raise Damaged(DATA, None, "is not the one that the manifest names: its digest differs")
        try:
            check(counts, entry, manifest["system"])
        except (GosprlError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise Damaged(DATA, None, str(error)) from None
        return cls(entry, counts)

    @property
    def seed_alone(self) -> bool:
        """Whether random numbers follow from the seed alone, as in runs that were begun before they did not."""
        return "streams" not in self.entry

    @property
    def digest(self) -> str:
        """What random numbers follow from beside the seed: the digest of the counts; empty if nothing does."""
        return "" if self.seed_alone or not self.counts["visits"] else counted.digest_of(self.counts)

    def write(self, directory: Place) -> None:
        """Write the file, and wait until it is on the disk."""
        write_json(directory / DATA, dict(self.counts))

    def described(self) -> dict[str, Any]:
        """Return their order and where they come from."""
        return dict(self.entry)

    def count_into(self, model: EmpiricalModel, system: System, rewards: tuple[float, float] = ANY_REWARD) -> None:
        """Let an empty model be as it was when it had counted the data; `Damaged` if they are not of this system."""
        try:
            self._count(model, self._discover(model, system))
            model.origins = within(self.entry)
            model.ended = self._ended(model)
            level_ranks(model)
            self._check_rewards(model, rewards)
        except (GosprlError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise Damaged(DATA, None, f"these are no data of this system: {error}") from None

    def _discover(self, model: EmpiricalModel, system: System) -> Ints:
        """Add the states, in their order; return the number that each has in the model [S]."""
        counts, fixed = self.counts, model.states.fixed
        if counts["actions"] is not None:
            system.know_actions([thaw(key_of(text)) for text in counts["actions"]])
            model.widen(counts["room"])
        for s in counts["discovered"] if fixed else ():
            model.locate(s, UNSAID)
        place = np.array(
            [*range(fixed), *(_added(model, kind, text) for kind, text in counts["states"])], dtype=np.int64
        )
        if counts["actions"] is not None:
            enable_known(model, len(counts["actions"]))
        if model.discovered != place[counts["discovered"]].tolist() or len(set(place.tolist())) < len(place):
            raise ValueError("the states are not in the order in which they were discovered")
        model.given = tuple(counts["given"])
        return place

    def _count(self, model: EmpiricalModel, place: Ints) -> None:
        from gosprl import _kernels

        state, action, _, pair, succ, number, first = arrays(self.counts)
        state, succ = place[state], place[succ]
        taken = np.ones(len(state), dtype=bool)
        if model.resets != "anytime":  # resets were chosen in the data, and cannot be here
            taken = action < model.num_actions
        rows = model.rows.index(state, np.where(taken, action, 0))
        kinds = np.array([model.states.kind(s) for s in range(model.states.used)])
        kept, from_reset, to_reset = taken[pair], (kinds[state] == "reset")[pair], kinds[succ] == "reset"
        if not model.enabled[rows].all() or (kept & (to_reset != model.certain[rows][pair])).any():
            raise ValueError("expected pairs that exist, and the reset only after endings and where it was chosen")
        if (from_reset & (kinds[succ] != "live")).any():
            raise ValueError("expected that a reset leads to a live state")
        of, successor, number, first = rows[pair[kept]], succ[kept].astype(np.int32), number[kept], first[kept]
        done = 0
        while done < len(of):
            done = _kernels.add_many(model.counts, done, of, successor, number, first)
            if done < len(of):
                model.grow(int(model.counts.length[of[done]]))
        model.counts.reward_sum[rows[taken]] = np.array(self.counts["rewards"])[taken]
        model.counts.reward_sq[rows[taken]] = np.array(self.counts["squares"])[taken]
        _kernels.touch_many(model.counts, rows[taken])
        self._count_unknown(model, place)

    def _count_unknown(self, model: EmpiricalModel, place: Ints) -> None:
        state, action, number, until = np.array(self.counts.get(UNKNOWN, []), dtype=np.int64).reshape(-1, 4).T
        taken = action < model.num_actions
        rows = model.rows.index(place[state[taken]], action[taken])
        if not model.enabled[rows].all() or model.certain[rows].any():
            raise ValueError("unknown: expected pairs that exist")
        if rows.size:
            model.add_unknown_places(rows, number[taken], until[taken])

    def _ended(self, model: EmpiricalModel) -> bool:
        if "ended" in self.counts:
            return bool(self.counts["ended"])
        reset = model.states.reset
        return reset >= 0 and bool(model.visits[model.rows.ptr[reset]] > 1 + self.counts["restarts"])

    def _check_rewards(self, model: EmpiricalModel, rewards: tuple[float, float]) -> None:
        steps = ~model.certain & ~model.terminal[model.rows.state] & (model.visits > 0)
        mean = model.reward_sum[steps] / model.visits[steps]
        if not np.all((mean >= rewards[0] - 1e-9) & (mean <= rewards[1] + 1e-9)):
            raise ValueError(f"expected rewards in [{rewards[0]:g}, {rewards[1]:g}], got a mean outside of that")

    def lives(self, fixed: int) -> list[Hashable]:
        """Return the keys of the live states, in their order; `fixed` is the number of those known beforehand."""
        if fixed:
            return list(self.counts["discovered"])
        return [key_of(text) for kind, text in self.counts["states"] if kind == "live"]

    def steps(self, fixed: int, actions: int) -> Iterator[tuple[Hashable, int, Hashable, bool, int]]:
        """Yield (key, action, next key, whether an episode ended, count) of the transitions; a crash has the key None.

        Parameters
        ----------
        fixed
            The number of states known beforehand.
        actions
            The number of actions: a chosen reset, which is no step, has this number.
        """
        others = [(kind, text and key_of(text)) for kind, text in self.counts["states"]]

        def named(s: int) -> tuple[str, Any]:
            return ("live", s) if s < fixed else others[s - fixed]

        state, action, _, *transitions = (column.tolist() for column in arrays(self.counts))
        for pair, s_next, n, _ in zip(*transitions, strict=True):
            (kind, key), a, (kind_next, key_next) = named(state[pair]), action[pair], named(s_next)
            if kind == "live" and a < actions:
                yield key, a, key_next, kind_next != "live", n

    def unknown(self, fixed: int) -> Iterator[tuple[Hashable | None, int, int]]:
        """Yield (key, action, number) of pairs with unknown outcomes; the reset has the key None and the action -1."""
        for s, a, number, _ in self.counts.get(UNKNOWN, []):
            kind, text = ("live", None) if s < fixed else self.counts["states"][s - fixed]
            key = s if s < fixed else key_of(text or "") if kind == "live" else None
            yield key, a if kind == "live" else -1, number


def data_in_words(entry: Mapping[str, Any]) -> str:
    """Return what a manifest says of data, in words."""
    order = {"collected": "in the order collected", "unknown": "their order is unknown", None: "of runs, in order"}
    names = ", ".join(printable(f"{source['name']:.200} ({source['kind']:.20})") for source in entry["sources"][:SHOWN])
    more = f" and {len(entry['sources']) - SHOWN} more" if len(entry["sources"]) > SHOWN else ""
    return f"{entry['samples']:,} samples of {names}{more}, {order[entry['order']]}"


def _added(model: EmpiricalModel, kind: str, text: str | None) -> int:
    """Return the number of a state in a model, which it is added to if it is new."""
    if kind == "reset":
        if model.states.reset < 0:
            raise ValueError("there are resets, and the system is never reset")
        return model.states.reset
    if kind == "crash":
        return model.final(CRASH)
    key = key_of(text or "")
    return model.locate(key, UNSAID) if kind == "live" else model.final(key)


def counts_described(model: EmpiricalModel) -> dict[str, Any]:
    """Return everything that a model has counted, as the file has it."""
    states, rows = model.states, np.flatnonzero(model.visits + model.unknown if model.unknown.size else model.visits)
    used = int(model.rows.action[rows[~model.certain[rows]]].max(initial=-1)) + 1
    freeze = Content().freeze
    hidden = np.flatnonzero(model.unknown)
    unknown = (model.rows.state[hidden], model.rows.action[hidden], model.unknown[hidden], model.unknown_until[hidden])
    return {
        "states": [[states.kind(s), _text(states.kind(s), states.key(s))] for s in range(states.fixed, states.used)],
        "discovered": list(model.discovered),
        **{name: column.tolist() for name, column in counted.columns_of(model).items()},
        "actions": None if model.all_actions else [text_of(freeze(value)) for value in model.actions[:used]],
        "room": None if model.all_actions else model.num_actions,
        "ended": model.ended,
        "given": list(model.given),
        **({UNKNOWN: np.array(unknown).T.tolist()} if hidden.size else {}),
    }


def _text(kind: str, key: Any) -> str | None:
    return text_of(key) if kind in ("live", "final") else None


def arrays(counts: Mapping[str, Any]) -> list[Ints]:
    """Return the columns of whole numbers, those of pairs first."""
    return [np.array(counts[name], dtype=np.int64) for name in (*OF_PAIRS, *OF_TRANSITIONS)]


def check(counts: Mapping[str, Any], entry: Mapping[str, Any], system: Mapping[str, Any]) -> None:
    """Raise `ValueError` if a file cannot be what the manifest says of it; nothing is allocated by what it claims."""
    fixed: int = system["states"] or 0
    if set(counts) - {UNKNOWN} not in (FIELDS, EARLIER_FIELDS):
        raise ValueError(f"expected the fields {', '.join(sorted(FIELDS))}, got {sorted(counts)!r:.200}")
    _check_types(counts)
    _check_states(counts, fixed, system["actions"])
    _check_transitions(counts, fixed + len(counts["states"]))
    actions = system["actions"] or len(counts["actions"])
    pairs = zip(counts["state"], counts["action"], counts["visits"], strict=True)
    live = [kind == "live" for kind, _ in counts["states"]]
    samples = sum(n for s, a, n in pairs if a < actions and (s < fixed or live[s - fixed]))
    if samples != entry["samples"]:
        raise ValueError(f"has {samples:,} samples; the manifest says {entry['samples']:,}")
    label = {"collected": VOUCHED, "unknown": UNSELECTED, None: None}[entry["order"]]
    if label is not None and label not in [OF_BEFORE.get(what, what) for what in counts["given"]]:
        raise ValueError(f"its order is said to be {entry['order']!r}, and guarantees do not say so")
    if entry["order"] == "unknown" and max(counts["first"], default=0) > 0:
        raise ValueError("its order is said to be unknown, and it says when a successor was first seen")


def _check_types(counts: Mapping[str, Any]) -> None:
    for name in ("discovered", *OF_PAIRS, *OF_TRANSITIONS):
        if type(counts[name]) is not list or not all(type(n) is int and abs(n) < 2**62 for n in counts[name]):
            raise ValueError(f"{name}: expected whole numbers")
    _check_unknown(counts.get(UNKNOWN, []))
    for name in REWARDS:
        if type(counts[name]) is not list or not all(type(x) is float and math.isfinite(x) for x in counts[name]):
            raise ValueError(f"{name}: expected finite numbers")
    for names in ((*OF_PAIRS, *REWARDS), OF_TRANSITIONS):
        if len({len(counts[name]) for name in names}) != 1:
            raise ValueError(f"{', '.join(names)}: expected lists of one length")
    if "ended" in counts and type(counts["ended"]) is not bool:
        raise ValueError(f"ended: expected true or false, got {counts['ended']!r:.40}")
    if "restarts" in counts and (type(counts["restarts"]) is not int or not 0 <= counts["restarts"] < 2**62):
        raise ValueError("restarts: expected a whole number from 0 on")
    known = {VOUCHED, UNSELECTED, APART, *OF_BEFORE, *ASSUMED.values()}
    if type(counts["given"]) is not list or not set(counts["given"]) <= known:
        raise ValueError(f"given: expected what data take for granted, got {counts['given']!r:.80}")


def _check_states(counts: Mapping[str, Any], fixed: int, actions: int | None) -> None:
    for entry in counts["states"]:
        kind, text = entry
        if kind not in KINDS or (type(text) is str) != (kind in ("live", "final")):
            raise ValueError(f"states: expected a kind and a key, got {entry!r:.60}")
        if text is not None:
            key_of(text)
    there = fixed + len(counts["states"])
    if not all(0 <= s < there for s in counts["discovered"]):
        raise ValueError("discovered: expected numbers of states")
    if (counts["actions"] is None) != (actions is not None) or (counts["room"] is None) != (actions is not None):
        raise ValueError("actions, room: expected where their number is not known, and only there")
    if counts["actions"] is not None:
        if type(counts["actions"]) is not list or not all(type(text) is str for text in counts["actions"]):
            raise ValueError("actions: expected keys")
        for text in counts["actions"]:
            key_of(text)
        most = max(FEW_ACTIONS, 2 * len(counts["actions"]))
        if type(counts["room"]) is not int or not 1 <= counts["room"] <= most:
            raise ValueError(f"room: expected at most {most}, got {counts['room']!r:.20}")


def _check_unknown(unknown: Any) -> None:
    if type(unknown) is not list or not all(type(entry) is list and len(entry) == 4 for entry in unknown):
        raise ValueError(f"{UNKNOWN}: expected lists [state, action, number, last place]")
    if not all(type(n) is int and 0 <= n < 2**62 for entry in unknown for n in entry):
        raise ValueError(f"{UNKNOWN}: expected whole numbers from 0 on")
    if not all(1 <= number <= until for _, _, number, until in unknown):
        raise ValueError(f"{UNKNOWN}: expected at least one unknown place, and the last at or after their number")
    if len({(s, a) for s, a, _, _ in unknown}) < len(unknown):
        raise ValueError(f"{UNKNOWN}: expected each pair once")


def _check_transitions(counts: Mapping[str, Any], states: int) -> None:
    state, action, visits, pair, succ, number, first = arrays(counts)
    if visits.sum(dtype=float) >= 2.0**62:
        raise ValueError("visits: expected fewer than 2^62")
    for name, column, end in (("state", state, states), ("next_state", succ, states), ("pair", pair, len(state))):
        if column.min(initial=0) < 0 or column.max(initial=-1) >= end:
            raise ValueError(f"{name}: expected numbers in 0..{end - 1}")
    if action.min(initial=0) < 0 or visits.min(initial=1) < 1 or number.min(initial=1) < 1:
        raise ValueError("action, visits, count: expected no negative numbers, and no counts of 0")
    if len(set(zip(counts["state"], counts["action"], strict=True))) < len(state):
        raise ValueError("state, action: expected each pair once")
    if len(set(zip(counts["pair"], counts["next_state"], strict=True))) < len(pair):
        raise ValueError("pair, next_state: expected each transition once")
    sums = np.zeros_like(visits)
    np.add.at(sums, pair, number)
    if not np.array_equal(sums, visits):
        raise ValueError("visits: expected the sums of the counts")
    places = visits.copy()
    hidden = {(s, a): number for s, a, number, _ in counts.get(UNKNOWN, [])}
    places += [hidden.get(where, 0) for where in zip(counts["state"], counts["action"], strict=True)]
    if (np.abs(first) > places[pair]).any():
        raise ValueError("first: expected visits of the pair")
