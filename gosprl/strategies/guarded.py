"""Guarded: walk by the practical plan while a guard allows it, by Algorithm 1 in sets that hold otherwise.

The rule (proved in docs/theory/guarded.md). T_p and T_c are the practical and the certified steps so far, J the needed
samples so far. The credit is

    Lambda = 4 P l + 3 J + sum_j v_j,      l = log(S P / delta),

P pairs, S states, v_j the optimistic value, in sets that hold, from some state of the episode of the j-th needed sample
to what is under-sampled, or 1 where that was not computed. A practical step is made only if

    T_p + 1 <= kappa (Lambda + T_c);

otherwise certified attempts go on, from the state where the walk is, until they bring a needed sample, or have made as
many steps as all certified ones before, and at least P l: that happens at most log T times. The v_j cost a plan, so
none is computed before the credit runs out. Then one plan values all states, and with them the episodes to come, which
are credited as their first samples are counted; until the credit runs out again and counts have doubled or goals were
met. (In systems too large for plans over all states: the state of that moment, once an episode.)

What it promises. Always, in every run, T <= (1 + kappa) T_c + kappa Lambda. With probability 1 - delta, in a
communicating MDP, v_j <= D and T_c obeys the theorem's bound, so T does, up to a constant factor. Practical samples
only narrow the sets that certified attempts plan with.
"""

import math
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gosprl import _checks
from gosprl.collecting.record import UNLIMITED
from gosprl.errors import GosprlError, InputError
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.workspace import Workspace
from gosprl.sets.intervals import Confidence
from gosprl.strategies.base import Attempt, GivenUp
from gosprl.strategies.gosprl import Gosprl
from gosprl.strategies.practical import Practical

if TYPE_CHECKING:
    from gosprl._kernels import Ledger

VALUE = 0.95  # the part of a value that an episode to come is credited with: chosen by measurement as well
VALUED_STATES = 500  # up to which all states are valued at once
GIFT, SAMPLE = 4, 3  # what P l and a needed sample count in the credit: chosen by measurement, see the proof's page


@dataclass(frozen=True)
class Account:
    """How a guarded run spent its steps; always practical <= kappa (credit + certified)."""

    practical: int  # T_p
    certified: int  # T_c
    samples: int  # J
    credit: float  # Lambda
    kappa: float

    @property
    def bound(self) -> float:
        """(1 + kappa) T_c + kappa Lambda, which T = T_p + T_c never exceeds."""
        return (1 + self.kappa) * self.certified + self.kappa * self.credit


@dataclass
class Guarded:
    """Near the fluid limit where a nearly greedy plan gets there, and never far beyond the paper's bound.

    delta, confidence
        Level and family (`"kl"`, `"bernstein"` or an object) of the sets that certified attempts plan in.
    successors
        Which next states are possible at all, as in `EmpiricalModel.restrict`: the sets are much smaller then.
    kappa
        Practical steps allowed for each unit of credit and each certified step.
    sliver
        Width of the practical plan's sets, as a multiple of those that hold.
    fluid
        Whether the practical plan prices goals by the fluid program; by default up to 500 states.
    """

    delta: float = 0.1
    confidence: str | Confidence | None = None
    successors: Any = field(default=None, repr=False)
    kappa: float = 1.0
    sliver: float = 0.01
    fluid: bool | None = None

    certified: Gosprl = field(init=False, repr=False)
    practical: Practical = field(init=False, repr=False)
    _model: EmpiricalModel | None = field(init=False, repr=False, default=None)
    _steps: list[int] = field(init=False, repr=False)  # practical and certified ones
    _counted: tuple[int, int] = field(init=False, repr=False, default=(0, 0))  # steps, samples taken into account
    _failed: bool = field(init=False, repr=False, default=False)
    _patience: int = field(init=False, repr=False, default=0)  # P l
    _worth: float = field(init=False, repr=False, default=0.0)  # sum of v_j - 1 where v_j was computed
    _valued: int = field(init=False, repr=False, default=-1)  # samples at the last episode for which it was
    _ledger: "Ledger | None" = field(init=False, repr=False, default=None)  # where such sums are kept while walking
    _values: Workspace | None = field(init=False, repr=False, default=None)
    _priced: tuple[int, int] = field(init=False, repr=False, default=(-1, -1))  # of the goals, when all were valued
    _since: int = field(init=False, repr=False, default=0)  # samples at that time
    _limit: Any = field(init=False, repr=False, default=None)  # [R] visits at which they are worth valuing again
    _mode: int | None = field(init=False, repr=False, default=None)  # of the last attempt: 0 practical, 1 certified
    _due: tuple[int, int] | None = field(
        init=False, repr=False, default=None
    )  # certified until (samples, T_c) are these

    def __post_init__(self) -> None:
        self.kappa = _checks.positive("kappa", self.kappa)
        self.certified = Gosprl(
            delta=self.delta, confidence=self.confidence, successors=self.successors, duplicate_start=False
        )
        self.practical = Practical(
            delta=self.delta,
            scale=_checks.positive("sliver", self.sliver),
            successors=self.successors,
            fluid=self.fluid,
        )
        self._steps = [0, 0]

    @property
    def guarantee(self) -> str:
        return self.certified.guarantee

    @property
    def lost(self) -> dict[int, str]:
        return self.certified.lost

    @property
    def work(self) -> dict[str, int]:
        """What planning took, of both plans together."""
        practical, certified = self.practical.work, self.certified.work
        both = {name: number + certified.get(name, 0) for name, number in practical.items()}
        return {**both, "median rows": max(practical["median rows"], certified["median rows"])}

    @property
    def account(self) -> Account:
        """As of the last step that `settle` was told of; steps that the user only observed are on no side."""
        worth = self._worth + (0.0 if self._ledger is None else float(self._ledger.credit[0]))
        credit = GIFT * self._patience + (SAMPLE + 1) * self._counted[1] + worth
        return Account(self._steps[0], self._steps[1], self._counted[1], credit, self.kappa)

    def settle(self, model: EmpiricalModel, steps: int, samples: int, *, walked: bool = True) -> None:
        """Take into account the steps made and the needed samples collected so far; not walked: observed elsewhere."""
        if self._model is not model:
            return
        if self._mode is not None and walked:
            self._steps[self._mode] += steps - self._counted[0]
        self._counted = (steps, samples)

    def restart(self) -> None:
        self.certified.restart()

    def attempt(
        self, model: EmpiricalModel, need: "Ledger", s: int, t: int, rng: np.random.Generator
    ) -> Attempt | GivenUp:
        samples = int(need.scalars[2])
        if self._ledger is not need:  # another run, maybe on the same model
            self._begin(model, need, (t - 1, samples))
        self.settle(model, t - 1, samples)
        if self._due is not None and (samples > self._due[0] or self._steps[1] >= self._due[1]):
            self._due = None
        if self._due is None and self._allowed() < 1 and not need.unmet[s]:
            given_up = self._appraise(model, need, s, t, rng)
            if given_up is not None:
                return given_up
        if self._due is None and self._allowed() >= 1:
            return self._practical(model, need, s, t, rng)
        if self._due is None:
            self._due = (samples, self._steps[1] + max(self._steps[1], self._patience))
        return self._certified(model, need, s, t, rng)

    def _appraise(
        self, model: EmpiricalModel, need: "Ledger", s: int, t: int, rng: np.random.Generator
    ) -> GivenUp | None:
        """Value this episode, if it was not yet, and the ones to come."""
        samples, all_states = int(need.scalars[2]), model.num_states <= VALUED_STATES
        goals = (int(need.scalars[0]), int(need.scalars[3]))
        if all_states and self._priced == goals and np.all(model.visits <= self._limit):
            return None
        value = np.inf
        if all_states:
            if self._values is None:
                self._values = Workspace(model, self.certified._family)
            values = self._values.plan(need.unmet > 0, np.ones(len(model.rows)), min(1e-3, 1 / (2 * t)), -1)[1]
            value = float(values[s])
            credited, self._priced, self._limit = self._since < samples, goals, 2 * model.visits + 1
            need.worth[:] = np.where((need.unmet > 0) | np.isinf(values), 0.0, np.maximum(VALUE * values - 1, 0.0))
            self._since = samples
            if credited:  # this episode was, when it began
                self._valued = samples
                return None
        if self._valued == samples:
            return None
        self._valued = samples
        if np.isinf(value):
            if isinstance(given_up := self.certified.attempt(model, need, s, t, rng), GivenUp):
                return given_up
            value = self.certified.value
            self.certified.restart()
        self._worth += max(0.0, value - 1)
        return None

    def _begin(self, model: EmpiricalModel, need: "Ledger", counted: tuple[int, int]) -> None:
        S, P = model.num_states, len(model.rows)
        self._model, self._steps, self._counted, self._mode = model, [0, 0], counted, None
        self._failed, self._ledger = False, need
        self._values, self._priced, self._since = None, (-1, -1), np.iinfo(np.int64).max
        self._patience = math.ceil(P * math.log(S * P / self.delta))
        self._worth, self._valued, self._due = -float(need.credit[0]), -1, None

    def _allowed(self) -> int:
        """Practical steps that may be made now."""
        account = self.account
        allowed = min(self.kappa * (account.credit + account.certified), float(2**53))
        return math.floor(allowed) - account.practical

    def _practical(
        self, model: EmpiricalModel, need: "Ledger", s: int, t: int, rng: np.random.Generator
    ) -> Attempt | GivenUp:
        self.certified.restart()  # what is walked now is none of its attempts
        try:
            answer = self.practical.attempt(model, need, s, t, rng)
        except InputError:
            raise
        except GosprlError as error:  # a certified step is always allowed
            if not self._failed:
                warnings.warn(f"the practical plan failed, going on with certified ones: {error}", stacklevel=2)
            self._failed = True
            return self._certified(model, need, s, t, rng)
        if isinstance(answer, GivenUp):  # a sliver of a set proves nothing
            return self._certified(model, need, s, t, rng)
        self._mode = 0
        return replace(answer, horizon=min(answer.horizon, self._allowed()))

    def _certified(
        self, model: EmpiricalModel, need: "Ledger", s: int, t: int, rng: np.random.Generator
    ) -> Attempt | GivenUp:
        answer = self.certified.attempt(model, need, s, t, rng)
        self._mode = 1
        if isinstance(answer, GivenUp):
            return answer
        horizon = UNLIMITED if self._due is None else self._due[1] - self._steps[1]
        return replace(answer, horizon=min(answer.horizon, horizon))
