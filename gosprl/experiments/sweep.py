"""An experiment as data: cases x algorithms x seeds, the measurement, and the claims of the paper about it.

A `Job` specifies one run completely: the same job gives the same `Run`, on any machine and in any process. `execute`
makes it, and `gosprl.experiments.store` stores the outcome. Other algorithms than the reference are stopped at ten
times its steps in the same case and at the same width, the mean of its first PILOT runs. Such a run is censored: `met`
is False. Algorithms without sets are run once for all widths; the first width stops them.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import gosprl
from gosprl.applications.modest import ALPHA, PaperModel
from gosprl.collecting.collector import Collector
from gosprl.experiments.algorithms import ALGORITHMS, PAPER, WIDTHS, Width, at
from gosprl.model.empirical import EmpiricalModel
from gosprl.strategies.costs import VisitDriven

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PILOT = 5  # runs of the reference that determine max_steps of the others
CENSORED_AT = 10  # max_steps, as a multiple of their mean steps
LEAST_ERROR = 1e-6  # the error at which GOSPRL-for-MODEST ends; never reached
CHECKPOINTS = 60  # times at which an error is measured, even in their logarithm


@dataclass(frozen=True)
class Case:
    """A domain and a need; one panel, column or point of a figure."""

    name: str  # in file names
    title: str  # in figures
    domain: str
    parameters: tuple[tuple[str, Any], ...] = ()  # of the domain
    need: int = 10  # of every pair; with `random_need`, the largest possible
    random_need: int | None = None  # seed of needs drawn uniformly from 0..need, pair by pair
    only_at: str = ""  # only states with this character on the map have a need
    watch: str = ""  # count the visits of the states with this character
    horizon: int = 0  # if positive, measure the error of the estimated model up to this step, whatever is met

    def mdp(self) -> gosprl.TabularMDP:
        """Return the domain."""
        return gosprl.envs.make(self.domain, **dict(self.parameters))

    def needed(self, mdp: gosprl.TabularMDP) -> int | NDArray[np.int64]:
        """Return the need: a number, or an array [S, A]."""
        if self.random_need is not None:
            shape = (mdp.num_states, mdp.num_actions)
            return np.random.default_rng(self.random_need).integers(0, self.need + 1, size=shape)
        if self.only_at:
            return np.where(on_map(mdp, self.only_at), self.need, 0)[:, None].repeat(mdp.num_actions, axis=1)
        return self.need


TINY = Case("tiny", "", "riverswim6", need=1)


@dataclass(frozen=True)
class Job:
    """The complete specification of one run."""

    case: Case
    algorithm: str  # a name in `ALGORITHMS`
    seed: int
    max_steps: int | None = None

    @property
    def place(self) -> str:
        """Where its run is stored, in the folder of its experiment, without the ending."""
        return f"{self.case.name}/{self.algorithm}/{self.seed}"

    def described(self) -> dict[str, Any]:
        """Return everything that determines its outcome, without titles, labels and colours."""
        algorithm, case = ALGORITHMS[self.algorithm], asdict(self.case)
        del case["title"]
        return {
            "case": case,
            "algorithm": self.algorithm,
            "strategy": algorithm.strategy,
            "options": dict(algorithm.options),
            "told": algorithm.mdp_option,  # the key of files stored so far
            "trap_cost": algorithm.trap_cost,
            "visit_costs": algorithm.visit_costs,
            "seed": self.seed,
            "max_steps": self.max_steps,
        }

    def tiny(self) -> "Job | None":
        """Return a short job that compiles the same code; None if there is none."""
        return None if ALGORITHMS[self.algorithm].trap_cost else Job(TINY, self.algorithm, seed=0, max_steps=100)


@dataclass(frozen=True, eq=False)
class Run:
    """The outcome of one run."""

    seed: int
    steps: int
    met: bool  # False: stopped at max_steps
    max_steps: int | None
    curve: NDArray[np.float64]  # [n, 2] (step, proportion of states met) at each change; or (step, error)
    watched: int = 0  # visits of the watched states
    attempts: int = 0  # plans made
    ended: int = 0  # attempts of GOSPRL that ended before the run did
    reached: int = 0  # those of them that reached a goal
    uneven: float = 0.0  # distance of the visits' shares of the states from b(s) / B at the end, half of the l1 norm
    stop: str = ""  # why it ended
    states: int = 0  # with a need, at the end


class Results(dict[tuple[str, str], list[Run]]):
    """The runs of an experiment by (case, algorithm), in order of their seeds; failed ones are missing."""

    def steps(self, case: str, algorithm: str) -> NDArray[np.float64]:
        """Return the steps of each run [runs]; for censored runs, a lower bound on those to meet the need."""
        return np.array([run.steps for run in self[case, algorithm]], dtype=float)


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, and the verdict on it."""

    claim: str
    paper: str  # the paper's own words or numbers
    ours: str  # our measurement
    threshold: str  # when it counts as confirmed; fixed before the runs are made
    verdict: str  # one of `claims.VERDICTS`
    reason: str = ""


@dataclass(frozen=True)
class Experiment:
    """A figure or table of the paper."""

    name: str
    title: str
    paper: str  # where it is printed
    text: str  # a description, which names our own choices
    cases: tuple[Case, ...]
    algorithms: tuple[str, ...]
    quick: tuple[str, ...]  # names of the cases of a quick reproduction
    draw: "Callable[[Experiment, Results], Figure]"
    judge: "Callable[[Experiment, Results], list[Verdict]]"
    reference: str = "gosprl"  # the algorithm whose steps determine max_steps of the others
    share: float = 1.0  # of the runs asked for; below 1 where the paper has fewer runs of each case
    widths: tuple[Width, ...] = WIDTHS
    measures: Mapping[str, Callable[[Run], float]] = field(default_factory=dict)  # more columns of the table

    def seeds(self, runs: int) -> range:
        """Return the seeds of the runs of each algorithm and case."""
        return range(max(1, round(self.share * runs)))

    @property
    def references(self) -> tuple[str, ...]:
        """The reference at each width; empty if it is none of the algorithms."""
        names = dict.fromkeys(at(self.reference, width) for width in self.widths)
        return tuple(names) if self.reference in self.algorithms else ()

    @property
    def all_algorithms(self) -> tuple[str, ...]:
        """The algorithms at all widths."""
        return tuple(dict.fromkeys(at(name, width) for name in self.algorithms for width in self.widths))

    def at(self, width: Width, results: "Results") -> "Results":
        """Return the runs at a width, by the names that algorithms have in this experiment."""
        keys = ((case.name, name) for case in self.cases for name in self.algorithms)
        there = ((key, (key[0], at(key[1], width))) for key in keys)
        return Results({key: results[one] for key, one in there if one in results})

    def pilots(self) -> Iterator[Job]:
        """Return the runs that determine max_steps of the others; needed for any number of runs."""
        for case in self.cases:
            if not case.horizon:
                yield from (Job(case, name, seed) for name in self.references for seed in range(PILOT))

    def jobs(self, runs: int, pilot: Callable[[Job], Run]) -> Iterator[Job]:
        """Return all runs, given the outcome of each pilot."""
        for case in self.cases:
            limits = [self._max_steps(case, width, pilot) for width in self.widths]
            for algorithm in self.algorithms:
                first: dict[str, int | None] = {}  # the limit of each name, at its first width
                for width, limit in zip(self.widths, limits, strict=True):
                    first.setdefault(at(algorithm, width), limit)
                for name, limit in first.items():
                    free = algorithm == self.reference and not case.horizon
                    yield from (Job(case, name, seed, None if free else limit) for seed in self.seeds(runs))

    def _max_steps(self, case: Case, width: Width, pilot: Callable[[Job], Run]) -> int | None:
        """Return where the runs of a case are stopped, but those of the reference."""
        if case.horizon or self.reference not in self.algorithms:
            return case.horizon or None
        reference = at(self.reference, width)
        mean = np.mean([pilot(Job(case, reference, seed)).steps for seed in range(PILOT)])
        return math.ceil(CENSORED_AT * float(mean))


def quick(experiment: Experiment) -> Experiment:
    """Return a small version of an experiment: few cases, and a tenth of their horizons."""
    cases = (replace(case, horizon=case.horizon // 10) for case in experiment.cases if case.name in experiment.quick)
    return replace(experiment, cases=tuple(cases))


def execute(job: Job) -> Run:
    """Make one run."""
    case, algorithm = job.case, ALGORITHMS[job.algorithm]
    mdp = case.mdp()
    options = dict(algorithm.options)
    if algorithm.mdp_option:
        options[algorithm.mdp_option] = mdp
    if algorithm.trap_cost:
        options["costs"] = np.where(on_map(mdp, case.watch), algorithm.trap_cost, 1.0)
    if algorithm.visit_costs:
        options["costs"] = VisitDriven(needed_by_state(case, mdp), algorithm.visit_costs)
    if case.horizon:
        return _errors(job, mdp, algorithm.strategy, options)
    result = gosprl.collect(
        *(mdp, case.needed(mdp)), strategy=algorithm.strategy, seed=job.seed, max_steps=job.max_steps, **options
    )
    if result.stop == "interrupted":  # by Ctrl-C: not a complete run
        raise KeyboardInterrupt
    watched = int(result.counts[on_map(mdp, case.watch)].sum()) if case.watch else 0
    curve = np.stack([result.curve["step"].astype(float), result.curve["proportion"]], axis=1)
    return Run(
        *(job.seed, result.steps, result.met, job.max_steps, curve, watched, result.attempts),
        ended=int(result.work.get("ended", 0)),
        reached=int(result.work.get("reached", 0)),
        uneven=unevenness(result.counts.sum(axis=1), needed_by_state(case, mdp)),
        stop=result.stop,
        states=result.states,
    )


def _errors(job: Job, mdp: gosprl.TabularMDP, strategy: str, options: dict[str, Any]) -> Run:
    """Make a run of GOSPRL-for-MODEST, whose needs are for an error that is halved repeatedly; measure the error."""
    horizon, model = job.case.horizon, EmpiricalModel.over(mdp.rows)
    need = PaperModel(model, True, LEAST_ERROR, "l1", PAPER["delta"], ALPHA["decreasing"], begin=1.0)
    collector = Collector(need=need, strategy=strategy, seed=job.seed, model=model, **options)
    moments = np.geomspace(min(len(mdp.rows), horizon), horizon, CHECKPOINTS).round().astype(int)
    curve = []
    for moment in np.unique(moments).tolist():
        if collector.run(mdp, moment - collector.record.steps).stop == "interrupted":
            raise KeyboardInterrupt
        curve.append((float(moment), average_error(mdp, model)))
    return Run(job.seed, horizon, False, job.max_steps, np.array(curve), attempts=collector.attempts)


def needed_by_state(case: Case, mdp: gosprl.TabularMDP) -> NDArray[np.int64]:
    """Return b(s) [S], the samples needed of all pairs of each state."""
    exists = mdp.rows.to_dense(np.ones(len(mdp.rows), dtype=np.int64))
    return np.asarray((exists * case.needed(mdp)).sum(axis=1))


def unevenness(visits: NDArray[np.int64], need: NDArray[np.int64]) -> float:
    """Return the total variation distance of visits / sum(visits) from need / sum(need), both [S]; 0 without any."""
    shares = [each / max(1, each.sum()) for each in (visits, need)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def average_error(mdp: gosprl.TabularMDP, model: EmpiricalModel) -> float:
    """Return the mean over the pairs of |p_hat - p|_1; a pair never visited has p_hat = 0, hence error 1."""
    S = mdp.num_states
    true = np.repeat(np.arange(len(mdp.rows)), np.diff(mdp.ptr)) * S + mdp.succ
    ptr, succ, count, _ = model.stored()
    seen = np.repeat(np.arange(len(mdp.rows)), np.diff(ptr)) * S + succ
    p_hat = np.zeros(len(true))
    order = np.argsort(true)
    place = order[np.searchsorted(true, seen, sorter=order)]  # every transition that was seen is possible
    p_hat[place] = count / np.repeat(np.maximum(model.visits, 1), np.diff(ptr))
    return float(np.abs(p_hat - mdp.prob).sum() / len(mdp.rows))


def on_map(mdp: gosprl.TabularMDP, character: str) -> NDArray[np.bool_]:
    """Return a mask [S] of the states with this character on the map."""
    assert mdp.map is not None
    return np.array([tile == character for tile in "".join(mdp.map) if tile != "#"])


@cache
def fluid_limit(case: Case) -> float:
    """Return a lower bound on the expected steps of any algorithm in this case."""
    mdp = case.mdp()
    return gosprl.fluid_limit(mdp, case.needed(mdp))
