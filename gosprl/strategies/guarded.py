"""Guarded: follow the practical plan while a guard allows it, otherwise Algorithm 1 with unscaled confidence sets.

The rule (proved in docs/theory/guarded.md). T_p and T_c are the practical and the certified steps so far, J the needed
samples so far (a sample that counts for a pair and for a state counts twice). The credit is

    Lambda = 4 P l + 3 J + sum_j v_j,      l = log(S P / delta),

with P pairs and S states. v_j is CREDITED times the optimistic value, in unscaled sets, of reaching an under-sampled
state from the first state of the episode of the j-th needed sample, wherever the walk has gone since; it is 1 if that
is less, or was not computed. A practical step is made only if

    T_p + 1 <= kappa (Lambda + T_c).

Otherwise certified attempts start from the current state. They continue until they collect a needed sample, or until
they have made as many steps as all certified ones before, and at least P l: that happens at most log T times. Each v_j
takes a plan, so none is computed before the credit is used up. Then one plan values all states, and so the episodes to
come: each is credited when its first sample is counted. A new plan is made when the credit is used up again and counts
have doubled or goals were met. The episode in which a planner does this first was not credited when it began: its v_j
is the full value of the state that the walk is in then. With more than VALUED_STATES states, plans for all of them are
too expensive: when the credit is used up, the first state of the episode is valued, once per episode.

Guarantee. In every run, T <= (1 + kappa) T_c + kappa Lambda. If the sets hold, with probability 1 - delta, v_j <= D in
a communicating MDP. With probability 1 - 2 delta, T_c also satisfies the theorem's bound, and so does T, up to a
constant factor. Practical samples can only narrow the sets that certified attempts plan with.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl import _checks
from gosprl.collecting.need import Need
from gosprl.errors import GosprlError, InputError
from gosprl.guarantee import Guarantee
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.workspace import Workspace
from gosprl.sets import Confidence
from gosprl.strategies.base import UNLIMITED, Attempt, GivenUp, Planner, Strategy
from gosprl.strategies.gosprl import Gosprl, GosprlPlanner
from gosprl.strategies.knowledge import take_knowledge
from gosprl.strategies.practical import Practical, PracticalPlanner

CREDITED = 0.95  # the part of the value of its first state that an episode is credited with: chosen by measurement
VALUED_STATES = 500  # up to this number of states, one plan values all of them
GIFT, SAMPLE = 4, 3  # factors of P l and of J in the credit: chosen by measurement, see the page of the proof
PRACTICAL, CERTIFIED = 0, 1


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
        """The bound (1 + kappa) T_c + kappa Lambda, which T = T_p + T_c never exceeds."""
        return (1 + self.kappa) * self.certified + self.kappa * self.credit


@dataclass(frozen=True)
class Guarded(Strategy):
    """Follow a nearly greedy plan, often near the fluid limit, while the steps stay within the paper's bound.

    Parameters
    ----------
    delta, confidence
        Level and family (`"kl"`, `"bernstein"` or a `Confidence`) of the sets that certified attempts plan with.
    successors
        Candidates for the next states, as in `EmpiricalModel.restrict`; the sets are much smaller with them.
    dynamics
        The true `TabularMDP`: plan with known dynamics, nothing is learnt.
    reach
        Give up each state whose optimistic distance, in the sets of certified attempts, exceeds it.
    kappa
        Practical steps allowed for each unit of credit and each certified step.
    practical_scale
        Width multiplier of the practical plan's sets; None: as in `Practical`.
    fluid
        Whether the practical plan prices goals by the fluid program; None is True (see `Practical`).
    prior
        Whether the practical plan uses the learnt prior where it leads (`gosprl.planning.prior`).
    """

    delta: float = 0.1
    confidence: str | Confidence = "kl"
    successors: Any = field(default=None, repr=False)
    dynamics: TabularMDP | None = None
    reach: float | None = None
    kappa: float = 1.0
    practical_scale: float | None = None
    fluid: bool | None = None
    prior: bool = True

    def __post_init__(self) -> None:
        _checks.positive("kappa", self.kappa)
        if self.practical_scale is not None:
            _checks.positive("practical_scale", self.practical_scale)
        self.certified()
        self.practical()

    def certified(self) -> Gosprl:
        """Return the options of certified attempts: Algorithm 1 with unscaled sets."""
        return Gosprl(
            delta=self.delta,
            confidence=self.confidence,
            successors=self.successors,
            dynamics=self.dynamics,
            reach=self.reach,
            duplicate_start=False,
        )

    def practical(self) -> Practical:
        """Return the options of the practical plan."""
        return Practical(
            delta=self.delta,
            scale=self.practical_scale,
            successors=self.successors,
            dynamics=self.dynamics,
            fluid=self.fluid,
            prior=self.prior,
        )

    def begin(self, model: EmpiricalModel, need: Need, rng: np.random.Generator) -> "GuardedPlanner":
        """Make the planner of a run."""
        take_knowledge(model, self.dynamics, self.successors)
        certified = GosprlPlanner(self.certified(), model, need, rng)
        practical = PracticalPlanner(self.practical(), model.returned, need, rng, certified.reach)
        return GuardedPlanner(self, model, need, certified, practical)


class GuardedPlanner(Planner):
    """The guard in one run.

    Parameters
    ----------
    certified
        Plans the certified steps.
    practical
        Plans the practical steps; may be any planner.
    """

    def __init__(
        self,
        options: Guarded,
        model: EmpiricalModel,
        need: Need,
        certified: GosprlPlanner,
        practical: Planner,
    ) -> None:
        self.options, self.model, self.need = options, model, need
        self.certified, self.practical = certified, practical
        self._steps = [0, 0]  # practical and certified ones
        self._counted = (0, need.collected)  # steps and samples at the last call of `account`
        self._mode: int | None = None  # of the last attempt: PRACTICAL or CERTIFIED
        self._until: tuple[int, int] | None = None  # certified attempts continue until (samples, T_c) reach these
        need.clear_credit()
        self._computed = 0.0  # sum of v_j - 1 over the episodes whose v_j was computed for one state
        self._valued_at = -1  # samples when that was last done
        self._values: Workspace | None = None  # plans that value all states
        self._valued_goals = (-1, -1)  # (unmet states, version) of the need when all states were last valued
        self._valued_samples = UNLIMITED  # samples at that time
        self._limit: NDArray[np.int64] | None = None  # [R] visits beyond which states are valued again
        self._warned = False

    @property
    def _patience(self) -> int:
        """P l; with the states discovered so far, where their number is unknown."""
        model = self.model.returned  # of a fleet, both models have the same states
        S, P = model.num_outcomes, model.num_pairs_bound
        if S is None or P is None:
            known = len(model.discovered) + 1
            S, P = 2 * known + 1, known * model.num_actions + 1
        return math.ceil(P * (math.log(S * P) - math.log(self.options.delta)))  # 1 / delta may be infinite

    def resize(self) -> None:
        """Make arrays anew; the account goes on."""
        self.certified.resize()
        self.practical.resize()
        self._values, self._limit, self._valued_goals = None, None, (-1, -1)

    def remember(self) -> dict[str, Any] | None:
        """Return the account, and what both planners remember; states are valued anew."""
        certified, practical = self.certified.remember(), self.practical.remember()
        if practical is None:
            return None
        samples = self.need.collected
        return {
            "steps": list(self._steps),
            "counted": list(self._counted),
            "mode": self._mode,
            "until": None if self._until is None else list(self._until),
            "computed": self._computed + self.need.credit,
            "began": self.need.began,
            # an episode that was credited when it began is not credited again
            "valued at": samples if self._valued_samples < samples else self._valued_at,
            "warned": self._warned,
            "certified": certified,
            "practical": practical,
        }

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Go on with the account of the planner that remembered this."""
        self._steps, self._counted = list(memory["steps"]), tuple(memory["counted"])
        self._mode, self._until = memory["mode"], None if memory["until"] is None else tuple(memory["until"])
        self._computed, self._valued_at, self._warned = memory["computed"], memory["valued at"], memory["warned"]
        self.need.began = memory.get("began", -1)  # checkpoints of earlier versions have none
        self.certified.recall(memory["certified"])
        self.practical.recall(memory["practical"])

    @property
    def may_give_up(self) -> bool:
        """Whether certified attempts may give up."""
        return self.certified.may_give_up

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of certified attempts."""
        return self.certified.guarantee

    @property
    def given_up(self) -> dict[int, str]:
        """States given up so far, and the test that decided it."""
        return self.certified.given_up

    @property
    def work(self) -> dict[str, float]:
        """The work of both planners together, and the account."""
        practical, certified = self.practical.work, self.certified.work
        both = {name: number + certified.get(name, 0) for name, number in practical.items()}
        rows = max(practical.get("median rows", 0), certified["median rows"])
        steps = {"practical steps": self._steps[PRACTICAL], "certified steps": self._steps[CERTIFIED]}
        return {**both, "median rows": rows, **steps, "credit": self.books.credit, "bound": self.books.bound}

    @property
    def books(self) -> Account:
        """The account at the last call of `account`; steps observed outside of attempts are not included."""
        practical, certified = self._steps
        return Account(practical, certified, self._counted[1], self._credit, self.options.kappa)

    @property
    def _credit(self) -> float:
        return GIFT * self._patience + (SAMPLE + 1) * self._counted[1] + self._computed + self.need.credit

    def place_walkers(self, states: Sequence[int]) -> None:
        """Take in where all walkers of a fleet are."""
        self.practical.place_walkers(states)

    def expected_steps(self) -> NDArray[np.float64] | None:
        """Return the expected steps to the next needed sample, by the practical plan."""
        return self.practical.expected_steps()

    @property
    def phase(self) -> int:
        """Whether the last attempt was a certified one."""
        return self._mode or PRACTICAL

    @property
    def serves_all(self) -> bool:
        """Whether it is a practical one that does."""
        return self.phase == PRACTICAL and self.practical.serves_all

    def account(self, steps: int, collected: int, *, walked: bool) -> None:
        """Record the total steps and needed samples so far."""
        if self._mode is not None and walked:
            self._steps[self._mode] += steps - self._counted[0]
        self._counted = (steps, collected)

    def restart(self) -> None:
        """Forget the attempt that ended."""
        self.certified.restart()
        self.practical.restart()

    def attempt(self, s: int, t: int) -> Attempt | GivenUp:
        """Return a practical attempt if the guard allows it, otherwise a certified one."""
        samples = self.need.collected
        if self.need.began < 0:
            self.need.began = s
        self.account(t - 1, samples, walked=True)
        if self._until is not None and (samples > self._until[0] or self._steps[CERTIFIED] >= self._until[1]):
            self._until = None
        allowed = self._allowed() if self._until is None else 0
        if self._until is None and allowed < 1 and not self.need.unmet_items[s]:
            given_up = self._value_episodes(s, t)
            if given_up is not None:
                return given_up
            allowed = self._allowed()
        if allowed >= 1:
            return self._attempt_practical(s, t, allowed)
        if self._until is None:
            certified = self._steps[CERTIFIED]
            self._until = (samples, certified + max(certified, self._patience))
        return self._attempt_certified(s, t)

    def _value_episodes(self, s: int, t: int) -> GivenUp | None:
        """Compute the value of this episode, if that was not done yet, and of later ones."""
        need, model, samples = self.need, self.model, self.need.collected
        if model.rows.num_states > VALUED_STATES:
            self._value_episode(s, t)
            return None
        goals = (need.unmet_states, need.version)
        known = self._limit is not None and bool(np.all(model.visits <= self._limit))
        if self._valued_goals == goals and known:
            return None
        if self._values is None:
            self._values = Workspace(model, self.certified.family)
        steps, precision = model.costs(ending=1.0), min(1e-3, 1 / (2 * t))
        values = self._values.plan(need.unmet_items > 0, steps, precision, -1)[1]
        value = float(values[s])
        credited = self._valued_samples < samples
        self._valued_goals, self._limit = goals, 2 * model.visits + 1
        nothing = (need.unmet_items > 0) | np.isinf(values)
        need.credit_at[:] = np.where(nothing, 0.0, np.maximum(CREDITED * values - 1, 0.0))
        self._valued_samples = samples
        if credited:  # this episode was credited when it began
            self._valued_at = samples
        if self._valued_at == samples:
            return None
        self._valued_at = samples
        if np.isinf(value):
            if isinstance(given_up := self.certified.attempt(s, t), GivenUp):
                return given_up
            value = self.certified.value
            self.certified.restart()
        self._computed += max(0.0, value - 1)
        return None

    def _value_episode(self, s: int, t: int) -> None:
        """Credit this episode, once, with the value of its first state, wherever the walk has gone since."""
        samples = self.need.collected
        if self._valued_at == samples:
            return
        self._valued_at = samples
        value = self.certified.distance(self.need.began, t, s)
        if value < np.inf:
            self._computed += max(0.0, CREDITED * value - 1)

    def _allowed(self) -> int:
        """Return the number of practical steps that the guard allows now."""
        practical, certified = self._steps
        return math.floor(min(self.options.kappa * (self._credit + certified), float(2**53))) - practical

    def _attempt_practical(self, s: int, t: int, steps: int) -> Attempt | GivenUp:
        """Return a practical attempt of at most so many steps."""
        self.certified.restart()  # the next walk does not belong to a certified attempt
        try:
            answer = self.practical.attempt(s, t)
        except InputError:
            raise
        except GosprlError as error:  # a certified step is always allowed
            if not self._warned:
                warnings.warn(f"the practical plan failed, going on with certified ones: {error}", stacklevel=2)
            self._warned = True
            return self._attempt_certified(s, t)
        if isinstance(answer, GivenUp):  # scaled sets certify nothing
            return self._attempt_certified(s, t)
        self._mode = PRACTICAL
        return _at_most(answer, steps)

    def _attempt_certified(self, s: int, t: int) -> Attempt | GivenUp:
        answer = self.certified.attempt(s, t)
        self._mode = CERTIFIED
        if isinstance(answer, GivenUp):
            return answer
        horizon = UNLIMITED if self._until is None else self._until[1] - self._steps[CERTIFIED]
        return _at_most(answer, horizon)


def _at_most(attempt: Attempt, horizon: int) -> Attempt:
    return attempt if attempt.horizon <= horizon else replace(attempt, horizon=horizon)
