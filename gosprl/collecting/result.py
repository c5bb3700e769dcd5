"""Result: what was collected, and how."""

import os
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gosprl.collecting.cut_off import are_assumed
from gosprl.collecting.record import Found
from gosprl.collecting.requirements import Requirement, are_resets_possible, scattered
from gosprl.guarantee import Guarantee
from gosprl.model.arranged import Arrangement
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.space import FEW_ACTIONS
from gosprl.model.states import CRASH
from gosprl.sets.kl import KL

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from gosprl.collecting.collector import Collector
    from gosprl.mdp.tabular import TabularMDP

OWN_DELTA = "at a delta of its own"  # of each statement beside the guarantee
SHOWN_ALIASED = 5  # states that a guarantee names
RESET, UNDISCOVERED = -1, -2  # in the place of states in `unmet` and `unreachable`
WIDTH = 105  # of a line of text
GREW = "none: what was needed depends on what was seen"
SHOWN = 200  # states up to which the limit is solved for just to be shown


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of a run: a snapshot, which later steps do not change."""

    met: bool  # every requirement fulfilled
    steps: int  # transitions collected
    attempts: int  # plans made
    stop: str  # "met" | "found" | "max_steps" | "unreachable" | "interrupted" | "failed", "running" while it goes on
    counts: NDArray[np.int64] = field(repr=False)  # [S, A] visits, 0 where the action does not exist
    unmet: NDArray[np.void] = field(repr=False)  # (state, action or -1 for any, needed, have); state -1 is the reset,
    # -2 stands for needed observations that were not discovered
    unreachable: dict[int, str] = field(repr=False)  # states given up, and which test said so
    curve: NDArray[np.void] = field(repr=False)  # (step, proportion of states whose requirement is met), at changes
    model: EmpiricalModel = field(repr=False)
    guarantee: Guarantee  # what is promised; prints as one line
    states: int  # with a requirement
    pairs: int  # with a requirement
    resets: int  # transitions from terminal states to starting ones; they cost no step
    unseen: float  # at level delta, no pair visited, nor the reset, hides more next-state mass than this
    of_discovered: bool  # whether the need is about the states discovered, so that met says nothing of others
    seed: int | None
    strategy: str  # its name and options
    work: Mapping[str, float] = field(repr=False)  # what planning took, and how steps were spent
    found: Found | None  # the first reward above the threshold, if one was given and one was found
    _need: tuple[NDArray[np.int64], NDArray[np.int64]] = field(repr=False)  # per row [R], per state [S]
    _lacked: tuple[NDArray[np.int64], NDArray[np.int64]] = field(repr=False)  # the same, of what the run began without
    _start: int | None = field(repr=False)
    _truth: "TabularMDP | None" = field(repr=False)
    _is_fixed: bool = field(repr=False)  # whether the need is, in the sense of `Requirement.is_fixed`
    _surplus_had: NDArray[np.int64] | None = field(repr=False)  # [S] of what the run began with; None: nothing
    fleet: Mapping[str, int] | None = None  # `walkers` and `lost` samples; None: there was one walker
    quits: int = 0  # resets that were chosen, `resets="anytime"`
    trouble: str = field(default="", repr=False)  # why the last walker was lost, with the traceback if there is one

    @property
    def limit(self) -> float | None:
        """The fluid limit of the need: what collecting it costs at least on average.

        It is measured as `paid` is: in steps, and `reset_cost` for each reset that is chosen. For the true dynamics if
        the system told them (a `TabularMDP`): then a lower bound for any collector whose walks begin where these did.
        What was there before the run is not counted. Otherwise for the model that was learnt: an estimate, as if the
        frequencies seen were the dynamics. A linear program, solved when first asked for: seconds from a thousand
        states on. None if there is none: `limit_of` says why. There is none for needs that depend on what was seen
        (`unseen=`, needs that are functions, requirements of your own, applications): what they ask for in the end is
        about what was walked, so the limit of that would always be near. inf if the need cannot be met.
        """
        return self._limit[0]

    @cached_property
    def _limit(self) -> tuple[float | None, str]:
        from gosprl.theory.limits import limit_of_walks_in

        if not self._is_fixed:
            return None, GREW
        if self._start is None:
            return None, "none: the run did not begin"
        return limit_of_walks_in(self._truth, self.model, *self._lacked, self._start, self._surplus_had)

    @property
    def truth(self) -> "TabularMDP | None":
        """The table that was walked, if the system told its dynamics."""
        return self._truth

    @property
    def start(self) -> int | None:
        """The state in which the walk began; None if there was none yet."""
        return self._start

    @property
    def limit_of(self) -> str:
        """What `limit` is the limit of; if there is none, "none: " and why."""
        return self._limit[1]

    @property
    def paid(self) -> float:
        """What `limit` is a limit of: the steps, and `reset_cost` for each reset that was chosen."""
        return self.steps + self.model.reset_cost * self.quits if self.quits else self.steps

    @property
    def ratio(self) -> float | None:
        """`paid` over `limit`; None if there is no limit, not all was met, or nothing was needed."""
        limit = self.limit if self.met else None
        return None if limit is None or not 0 < limit < np.inf else self.paid / limit

    @property
    def closeness(self) -> str:
        """Limit and ratio in words, or why there is none; nothing where it would take long to show."""
        if not self.met or (self._is_fixed and self.model.rows.num_states > SHOWN):
            return ""
        if self.limit is None:
            return self.limit_of
        if self.ratio is None:
            return ""
        return f"{self.limit:,.1f}, for {self.limit_of}: {self.ratio:.2f} times that"

    @property
    def hidden(self) -> str:
        """What `unseen` says, in words; it is a statement beside the guarantee, with a delta of its own."""
        return f"a pair visited may have next states never seen, of probability <= {self.unseen:.3g} ({OWN_DELTA})"

    @property
    def need(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What was needed at the end, of each pair [S, A] and of each state with any action [S]."""
        S, A = self.counts.shape
        pair, state = self._need
        return self.model.rows.to_dense(pair)[:S, :A], state[:S]

    @property
    def missing(self) -> int:
        """Samples that are still needed, in all."""
        return sum((self.unmet["needed"] - self.unmet["have"]).tolist())

    @property
    def unknown(self) -> list[tuple[int, int, int]]:
        """The pairs (state, action, number) with samples of a fleet whose outcomes are unknown; the reset is (-1, -1).

        These are no samples of the need, and confidence sets allow for every outcome that they may have had.
        """
        rows = np.flatnonzero(self.model.unknown)
        pairs = [self.model.rows.pair(row) for row in rows.tolist()]
        reset = self.model.states.reset
        shown = [(RESET, -1) if s == reset else (s, a) for s, a in pairs]
        return [(s, a, n) for (s, a), n in zip(shown, self.model.unknown[rows].tolist(), strict=True)]

    @property
    def crashes(self) -> int:
        """How many steps led to a crash of the system itself."""
        crash = self.model.states.final(CRASH)
        if crash < 0:
            return 0
        _, _, s_next, count = self.model.transitions()
        return int(count[s_next == crash].sum())

    @property
    def losses(self) -> str:
        """How many samples of a fleet were lost, and why the last one was, in words; "" if none was."""
        if self.fleet is None or not self.fleet["lost"]:
            return ""
        why = self.trouble.partition("\n")[0]
        return f"{self.fleet['lost']:,} samples" + (f"; the last walker: {why}" if why else "")

    def named(self, state: int) -> str:
        """Return a state as a message names it, by its observation; -1 and -2 as in `unmet`."""
        if state == UNDISCOVERED:
            return "observations not made yet"
        return "the reset" if state == RESET else f"state {self.model.states.name(state)}"

    @property
    def about(self) -> str:
        """The states and pairs with a need, in words."""
        states = f"for the {self.states:,} states discovered" if self.of_discovered else f"{self.states:,} states"
        return f"{states}, {self.pairs:,} pairs"

    def export(self, file: "str | os.PathLike[str]", to: str | None = None, **options: Any) -> None:
        """Write counts and model to a file of another format: see `gosprl.exchange.export` and docs/exchange.md."""
        from gosprl.exchange.exporting import export

        export(self, file, to, **options)

    def report(self, file: "str | os.PathLike[str]", **options: Any) -> "Path":
        """Write a page that shows the run at a glance: see `gosprl.report.report` and docs/report.md."""
        from gosprl.report.writing import report

        return report(self, file, **options)

    def plot(self, kind: str = "coverage", **options: Any) -> "Figure":
        """Draw the coverage, the visits or the graph of the learnt system: see `gosprl.report.plot`."""
        from gosprl.report.plots import plot

        return plot(self, kind, **options)

    def lines(self) -> list[tuple[str, str]]:
        """Return what is printed of the result, as (name, value)."""
        missing = f", {self.missing} samples missing" if self.missing else ""
        lines = [
            ("met", f"{self.met} ({self.about}{missing})"),
            ("stop", self.stop),
            ("steps", f"{self.steps:,}"),
            ("attempts", f"{self.attempts:,}"),
            ("guarantee", str(self.guarantee)),
            *([("unseen", self.hidden)] if self.of_discovered else []),
            *([("crashes", f"{self.crashes:,}")] if self.crashes else []),
            *([("lost", self.losses)] if self.losses else []),
            ("strategy", self.strategy),
            ("seed", repr(self.seed)),
        ]
        if self.closeness:
            lines.append(("limit", self.closeness))
        if self.found:
            where = f"{self.named(self.found.state)}, action {self.model.actions[self.found.action]}"
            lines.append(("found", f"reward {self.found.reward:g} at {where}"))
        if self.resets:
            lines.append(("resets", f"{self.resets:,}"))
        if self.unreachable:
            lines.append(("given up", ", ".join(self.named(s) for s in list(self.unreachable)[:10])))
        return lines

    def __repr__(self) -> str:
        shown = dict(self.lines())
        wrapped = textwrap.fill(self.strategy, WIDTH, subsequent_indent=" " * 13, break_long_words=False)
        text = "Result\n" + "\n".join(
            f"  {name:<10} {value}" for name, value in (shown | {"strategy": wrapped}).items()
        )
        trace = self.trouble.partition("\n")[2]
        return f"{text}\n{textwrap.indent(trace, ' ' * 13)}" if trace else text

    def _repr_html_(self) -> str:
        from gosprl.report.notebook import titled

        return titled("Result", self.lines())


def snapshot(collector: "Collector", *, last: bool) -> Result:
    """Return the result of a collector as it is now.

    Parameters
    ----------
    last
        Whether the collector is not used any more: then its counts are handed over, not copied.
    """
    record, model = collector.record.counted, collector.model
    report, need = collector.report(), record.need
    kept = model.arrangement()
    shown = model.arranged(kept)
    pair, state, num_states = need.asked()
    unmet = shown_unmet(model, need.unmet(), kept)
    had = scattered(collector.had, model.rows.places(collector.rows_had), len(model.rows))
    samples = np.where(model.certain, 0, had)  # resets are none
    had_of_states = np.bincount(model.rows.state, weights=samples, minlength=model.rows.num_states).astype(np.int64)
    live = ~model.terminal
    wanted = np.bincount(model.rows.state, weights=pair, minlength=model.rows.num_states) + state
    return Result(
        met=len(unmet) == 0 and collector.has_begun,
        steps=record.steps,
        attempts=collector.attempts,
        stop=collector.stop_reason(),
        counts=counts_of(shown, int(live[kept.states].sum())),
        unmet=unmet,
        unreachable=_unreachable(collector, report.given_up, unmet, kept),
        curve=_curve(collector, unmet, num_states),
        model=shown if last or shown is not model else shown.copy(),
        guarantee=_with_given_up(qualified(report.guarantee, model, need.requirement), need.waived),
        states=int((wanted[: model.states.used] > 0)[live[: model.states.used]].sum()) + _undiscovered(model, state),
        pairs=int((pair[live[model.rows.state]] > 0).sum()),
        resets=record.resets,
        unseen=unseen_mass(model, collector.strategy.delta),
        of_discovered=need.requirement.of_discovered,
        seed=collector.seed,
        strategy=repr(collector.strategy),
        work=report.work,
        found=_found(record.found, kept),
        _need=(pair[kept.rows], state[kept.states]),
        _lacked=(np.maximum(pair - had, 0)[kept.rows], np.maximum(state - had_of_states, 0)[kept.states]),
        _start=None if collector.start is None else int(kept.place[collector.start]),
        _truth=collector.truth,
        _is_fixed=need.requirement.is_fixed,
        _surplus_had=_placed(collector.surplus_had, kept, model.rows.num_states),
        fleet=collector.fleet_facts(),
        quits=record.quits,
        trouble=collector.last_trouble(),
    )


def _placed(of_states: NDArray[np.int64] | None, kept: Arrangement, S: int) -> NDArray[np.int64] | None:
    """Return numbers of states [S], which the model has numbered since, as the result numbers them."""
    return None if of_states is None else scattered(of_states, np.arange(len(of_states)), S)[kept.states]


def counts_of(model: EmpiricalModel, lives: int) -> NDArray[np.int64]:
    """Return the visits [S, A] of the live states of an arranged model, without resets."""
    visits = np.where(model.certain | model.terminal[model.rows.state], 0, model.visits)
    return model.rows.to_dense(visits)[:lives, : model.num_actions - (model.resets == "anytime")]


def _undiscovered(model: EmpiricalModel, state: NDArray[np.int64]) -> int:
    """Return how many observations are needed that are not discovered."""
    return int(state[model.states.used :].sum())


def _shown(model: EmpiricalModel, kept: Arrangement) -> NDArray[np.int64]:
    """[S] the index that a result has for each state: -1 for the reset, -2 for one that is not discovered."""
    index = kept.place.copy()
    index[model.states.used :] = UNDISCOVERED
    if model.states.reset >= 0:
        index[model.states.reset] = RESET
    return index


def shown_unmet(model: EmpiricalModel, unmet: NDArray[np.void], kept: Arrangement) -> NDArray[np.void]:
    """Return what is missing, with the indices that the result has."""
    unmet["state"] = _shown(model, kept)[unmet["state"]]
    return unmet


def _found(found: Found | None, kept: Arrangement) -> Found | None:
    if found is None:
        return None
    return found._replace(state=int(kept.place[found.state]), next_state=int(kept.place[found.next_state]))


def qualified(guarantee: Guarantee, model: EmpiricalModel, requirement: Requirement) -> Guarantee:
    """Return what is promised, with what it is about and what it takes for granted."""
    if guarantee.level is not None and not model.all_actions and len(model.actions) > FEW_ACTIONS:
        why = (
            f"{len(model.actions)} actions were named on the way, and levels are those of {FEW_ACTIONS}; "
            "give actions= the list of all"
        )
        guarantee = replace(guarantee, level=None, why=Guarantee.heuristic(why).why)
    if guarantee.level is not None:
        for what in model.given:
            guarantee = guarantee.assuming(what)
    if model.aliased:
        names = ", ".join(model.states.name(s) for s in sorted(model.aliased)[:SHOWN_ALIASED])
        more = "" if len(model.aliased) <= SHOWN_ALIASED else f" and {len(model.aliased) - SHOWN_ALIASED} more"
        guarantee = guarantee.assuming(f"that {names}{more} are states, though they offered different actions")
    return guarantee.within("of the states discovered") if requirement.of_discovered else guarantee


def _with_given_up(guarantee: Guarantee, waived: Mapping[int, str]) -> Guarantee:
    """Return what is promised, with what is taken for granted of states that were given up without a certificate."""
    if guarantee.level is not None and are_assumed(waived.values()):
        return guarantee.assuming("that the states given up at a time limit cannot be acted in")
    return guarantee


def _curve(collector: "Collector", unmet: NDArray[np.void], num_states: int) -> NDArray[np.void]:
    """Return the curve, with a last point if the last steps discovered states that have a need."""
    record = collector.record.counted
    points = record.curve if collector.has_begun else [(0, 0.0)]
    if num_states > record.need.num_states and (left := len(np.unique(unmet["state"]))) != record.need.unmet_states:
        points = [*points, (record.steps, (num_states - left) / num_states)]
    curve = np.empty(len(points), dtype=[("step", np.int64), ("proportion", np.float64)])
    curve[:] = points
    return curve


def _unreachable(
    collector: "Collector", given_up: Mapping[int, str], unmet: NDArray[np.void], kept: Arrangement
) -> dict[int, str]:
    """Return the unmet states that were given up, and which test said so."""
    need, model = collector.record.counted.need, collector.record.model
    reasons = {**need.not_offered(), **need.waived, **given_up}
    if collector.given_up is not None:
        reasons.update(collector.given_up.states)
    index = _shown(model, kept)
    shown = {int(index[s]): why for s, why in reasons.items()}
    return {s: shown[s] for s in np.unique(unmet["state"]).tolist() if s in shown}


def unseen_mass(model: EmpiricalModel, delta: float) -> float:
    """Return the largest cap, at level delta, on the mass of successors never seen, over the pairs visited."""
    visited = np.flatnonzero((model.visits > 0) & ~model.certain)
    if model.states.reset >= 0 and not are_resets_possible(model):
        visited = visited[visited != model.rows.ptr[model.states.reset]]  # a start that is never repeated
    if not visited.size:
        return 1.0
    sets = KL(delta).intervals(model, visited)
    if not model.closed:
        return float(sets.total.max())
    seen = model.stored(visited)[2] > 0  # of the candidates: what the others may have, and what these leave them
    room = np.add.reduceat(np.where(seen, 0.0, sets.upper), sets.ptr[:-1])
    left = 1 - np.add.reduceat(np.where(seen, sets.lower, 0.0), sets.ptr[:-1])
    return float(np.minimum(room, left).max())
