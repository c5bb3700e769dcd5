"""The Unified Markov Binary format, which PRISM, Storm and others read, by its library umbi (`gosprl[umb]`).

Rewards can be intervals there: NAME_interval, beside NAME_lower, NAME and NAME_upper as in the other formats. The notes
are the comment in the data about the model.
"""

import json
import math
import os
import tarfile
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.exchange.checkers import write_model
from gosprl.exchange.interval import IntervalMDP
from gosprl.exchange.reading import NO_INTERVALS, Given
from gosprl.mdp.tabular import TabularMDP

BYTES = 100  # memory per byte, and for bit vectors per bit, while a file is read, at most
SIZES = ("#states", "#choices", "#branches", "#choice-actions", "#branch-actions", "#players", "#observations")
INDEX = 10_000_000  # bytes of index.json at most
UNPACKED, UNPACKED_A_BYTE = 2**23, 64  # bytes of an archive once unpacked: at least, and for each byte of the file
PADDING = 2**20  # bytes after the last member, which are zeros


def _umbi() -> Any:
    try:
        import umbi
    except ImportError:
        raise InputError("umb: the package umbi reads and writes this format: pip install gosprl[umb]") from None
    return umbi


def write(model: Any, file: "str | os.PathLike[str]", *, force: bool = False, **options: Any) -> None:
    """Write a model to a UMB file; parameters as in `gosprl.exchange.checkers.write_model`."""
    _umbi()  # an error before anything is computed
    write_model(save, model, file, force, options)


def save(mdp: IntervalMDP, path: Path) -> None:
    """Write a model to a UMB file."""
    umbi = _umbi()
    umbi.ats.write(_system(umbi, mdp), str(path))


def _system(umbi: Any, mdp: IntervalMDP) -> Any:
    """Return the transition system of umbi."""
    from gosprl import __version__

    system = umbi.ats.ExplicitAts()
    system.num_players = 1
    system.model_info = umbi.ats.ModelInfo(name="gosprl", version=__version__, comment="\n".join(mdp.notes))
    for _ in range(mdp.num_states):
        system.add_state()
    system.set_initial_states([mdp.initial])
    names = sorted(set(mdp.actions), key=lambda name: (len(name), name))
    system.num_choice_actions, system.choice_action_to_name = len(names), names
    number = {name: i for i, name in enumerate(names)}
    interval = umbi.datatypes.Interval
    succ, lower, upper = mdp.succ.tolist(), mdp.lower.tolist(), mdp.upper.tolist()
    ptr = mdp.ptr.tolist()
    for r, s in enumerate(np.repeat(np.arange(mdp.num_states), np.diff(mdp.first)).tolist()):
        choice = system.add_state_choice(s)
        choice.action = number[mdp.actions[r]]
        for j in range(ptr[r], ptr[r + 1]):
            choice.add_branch(succ[j], lower[j] if mdp.point else interval(lower[j], upper[j]))
    for name, states in mdp.labels.items():
        if name != "init":
            holds = np.zeros(mdp.num_states, dtype=bool)
            holds[states] = True
            system.add_ap_annotation(name).set_state_values(holds.tolist())
    for name, values in mdp.single_rewards().items():
        system.add_reward_annotation(name).set_choice_values(values.tolist())
    for name, (low, _, high) in mdp.rewards.items():
        if not mdp.point and not np.array_equal(low, high):
            ends = [interval(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
            system.add_reward_annotation(f"{name}_interval").set_choice_values(ends)
    return system


def read(file: "str | os.PathLike[str]", *, rewards: str | None = None) -> TabularMDP:
    """Return the MDP of a UMB file; parameters as in `TabularMDP.from_umb`."""
    return given(file).to_mdp(rewards)


def given(file: "str | os.PathLike[str]") -> Given:
    """Return what a UMB file gives."""
    umbi, path = _umbi(), Path(file)
    _check_kind(path, _checked_index(path))
    try:
        return _given(path, umbi.umb.read(str(path)))
    except InputError:
        raise
    except Exception as error:  # umbi checks with assertions and errors of many types
        raise InputError(f"{path.name}: expected a UMB file, but it is damaged: {error!r:.200}") from None


def _checked_index(path: Path) -> dict[str, Any]:
    """Return index.json, after comparing the sizes that it claims with the bytes that are there."""
    if not path.is_file():
        raise InputError(f"file: expected a file, but there is none at {str(path)!r:.200}")
    total, text = 0, b""
    most = max(UNPACKED, UNPACKED_A_BYTE * path.stat().st_size)
    try:
        with tarfile.open(path, mode="r:*") as archive:
            for member in archive:
                total += max(0, member.size)
                if total > most:
                    raise InputError(
                        f"file: {path.name}: expected at most {most:,} bytes unpacked, {UNPACKED_A_BYTE} for each of "
                        f"its own, got {total:,} or more; give the archive without compression"
                    )
                _checks.memory(f"file: {path.name}, {total} bytes unpacked,", BYTES * total, "take a smaller model")
                if member.name == "index.json" and member.isfile() and member.size <= INDEX:
                    opened = archive.extractfile(member)
                    text = b"" if opened is None else opened.read()
            if archive.fileobj is not None:  # the end of a compressed file has its checksum
                archive.fileobj.read(PADDING)
        index = json.loads(text)
        system = index["transition-system"]
        sizes = {name: int(system.get(name, 0)) for name in SIZES}
    except InputError:
        raise
    except Exception as error:  # a foreign file fails in many ways, and a damaged archive in more
        raise InputError(f"{path.name}: expected a UMB file, a tar archive with index.json: {error!r:.200}") from None
    for name, size in sizes.items():
        if not 0 <= size <= 8 * total:
            raise InputError(f"{path.name}, index.json: expected {name} that fit into {total} bytes, got {size}")
    return dict(index)


def _check_kind(path: Path, index: dict[str, Any]) -> None:
    system = index["transition-system"]
    time, players = system.get("time"), system.get("#players", 0)
    if time != "discrete" or players not in (0, 1) or system.get("#observations", 0):
        raise InputError(
            f"{path.name}, index.json: expected an MDP or a Markov chain in discrete time, got time {time!r:.40} and "
            f"{players!r:.40} players"
        )
    kind = system.get("branch-probability-type")
    kind = kind.get("type") if isinstance(kind, dict) else kind
    if "interval" in str(kind):
        raise InputError(f"{path.name}: expected probabilities: {NO_INTERVALS}; got {kind!r:.80}")


def _given(path: Path, umb: Any) -> Given:
    system = umb.index.transition_system
    found = Given(path.name, states=system.num_states)
    S, C = system.num_states, system.num_choices
    of_state = list(range(S + 1)) if umb.state_to_choices is None else umb.state_to_choices
    of_choice = list(range(C + 1)) if umb.choice_to_branches is None else umb.choice_to_branches
    found.choice_state = np.repeat(np.arange(S), np.diff(of_state)).tolist()
    found.entry_choice = np.repeat(np.arange(C), np.diff(of_choice)).tolist()
    found.entry_succ = [int(target) for target in umb.branch_to_target]
    ones = [1.0] * len(found.entry_succ)
    found.entry_prob = ones if umb.branch_to_probability is None else [float(p) for p in umb.branch_to_probability]
    if umb.choice_to_choice_action is None or umb.choice_action_to_string is None:
        found.choice_action = [""] * C
    else:
        found.choice_action = [umb.choice_action_to_string[a] for a in umb.choice_to_choice_action]
    sizes = (len(found.choice_state), len(found.choice_action), len(found.entry_choice), len(found.entry_succ))
    if sizes != (C, C, system.num_branches, system.num_branches) or len(found.entry_prob) != system.num_branches:
        raise InputError(f"{path.name}: expected {C} choices and {system.num_branches} branches, got {sizes}")
    if len(set(zip(found.entry_choice, found.entry_succ, strict=True))) != len(found.entry_succ):
        raise InputError(f"{path.name}: expected each next state once in a choice")
    if found.entry_succ and not 0 <= min(found.entry_succ) <= max(found.entry_succ) < S:
        raise InputError(f"{path.name}: expected next states below {S}, got {max(found.entry_succ)}")
    found.labels["init"] = [s for s, initial in enumerate(umb.state_is_initial) if initial]
    for name, places in (umb.annotations or {}).get("aps", {}).items():
        found.labels[name] = [s for s, holds in enumerate(places.get("states", ())) if holds]
    for name, places in (umb.annotations or {}).get("rewards", {}).items():
        _take_rewards(found, name, places)
    return found


def _take_rewards(found: Given, name: str, places: dict[str, list[Any]]) -> None:
    if any(not isinstance(value, Real) for values in places.values() for value in values[:1]):
        return  # intervals have no place in a TabularMDP
    sizes = {"choices": len(found.choice_state), "states": found.states, "branches": len(found.entry_prob)}
    for where, values in places.items():
        size = sizes.get(where, 0)
        if len(values) != size or not all(map(math.isfinite, values)):
            raise InputError(
                f"{found.name}: expected {size} finite rewards {name!r:.60} of {where}, got {len(values)}, or others"
            )
    found.rewards[name] = {i: float(value) for i, value in enumerate(places.get("choices", ())) if value}
    if "states" in places:
        found.state_rewards[name] = {s: float(value) for s, value in enumerate(places["states"]) if value}
    for i, value in enumerate(places.get("branches", ())):
        row = found.entry_choice[i]
        found.rewards[name][row] = found.rewards[name].get(row, 0.0) + found.entry_prob[i] * float(value)
