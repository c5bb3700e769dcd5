"""Storm (stormpy 2.0.0) as an independent oracle for optimistic stochastic shortest paths.

Models are arrays indexed [state, action, successor].  A row (s, a) whose (upper) probabilities are all
zero does not exist, and every non-goal state has at least one row.  Goal states are absorbing and free:
their own rows are ignored.  Controller and nature both minimise the expected cost of reaching a goal, so
nature is "cooperative".  Models are built in memory, state i of the arrays being state i of Storm.
"""

from collections.abc import Collection, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import stormpy  # type: ignore[import-untyped]
from numpy.typing import NDArray

Array = NDArray[np.float64]
# The choices of one state: (cost, [(successor, probability), ...]), in Storm's number type.
Choices = list[tuple[Any, list[tuple[int, Any]]]]

_SUM_TOLERANCE = 1e-9


def bounded_values(lower: Array, upper: Array, costs: Array, goals: Collection[int], steps: int) -> Array:
    """Minimal expected cost accumulated within `steps` steps: `steps` value iterations from zero.

    Lower ends may be zero.  The values grow with `steps` towards the unbounded ones, so far more steps than
    a path takes (10**6 are affordable on small models) answer what `shortest_path_values` must refuse.
    """
    return _check(_interval_mdp(lower, upper, costs, goals), f'R{{"cost"}}min=? [C<={int(steps)}]')


def shortest_path_values(lower: Array, upper: Array, costs: Array, goals: Collection[int]) -> Array:
    """Minimal expected cost until a goal, infinite where no goal can be reached almost surely.

    Storm demands a positive lower end wherever the upper end is positive.  It only offers value iteration
    here, stopped once no value changes by more than 1e-14 (relative).  That is not certified: the relative
    error is about 1e-14 times the expected number of steps.
    """
    rows = np.delete(np.arange(len(lower)), list(goals))
    if np.any((lower[rows] <= 0) & (upper[rows] > 0)):
        raise ValueError("Storm needs positive lower ends for unbounded costs; use bounded_values")
    environment = stormpy.Environment()
    solver = environment.solver().min_max()
    solver.method = stormpy.environments.MinMaxMethod.VALUE_ITERATION
    solver.precision = stormpy.Rational("1/100000000000000")
    solver.relative_termination_criterion = True
    mdp = _interval_mdp(lower, upper, costs, goals)
    return _check(mdp, 'R{"cost"}min=? [F "goal"]', environment)


def known_values(P: Array, costs: Array, goals: Collection[int]) -> Array:
    """Minimal expected cost until a goal for exactly known probabilities, infinite where unreachable.

    Storm computes in exact rational arithmetic, each row being first divided by its exact sum; the only
    rounding is that of the result to floats.  Meant for small models: 20 states take well under a second,
    50 take seconds.
    """
    _require_rows(P, P, goals)
    states: list[Choices] = []
    for row_probabilities, row_costs in zip(P, costs, strict=True):
        choices: Choices = []
        for row, cost in zip(row_probabilities, row_costs, strict=True):
            exact = [(int(t), Fraction(float(row[t]))) for t in np.flatnonzero(row)]
            total = sum((p for _, p in exact), Fraction(0))
            if exact:
                choices.append((_rational(Fraction(float(cost))), [(t, _rational(p / total)) for t, p in exact]))
        states.append(choices)
    return _check(
        _mdp(stormpy.Rational, _rational(Fraction(0)), _rational(Fraction(1)), states, goals),
        'R{"cost"}min=? [F "goal"]',
    )


def _interval_mdp(lower: Array, upper: Array, costs: Array, goals: Collection[int]) -> Any:
    """The Storm interval MDP of the arrays."""
    _require_rows(lower, upper, goals)
    states: list[Choices] = [
        [
            (
                stormpy.Interval(float(costs[s, a])),
                [
                    (int(t), stormpy.Interval(float(lower[s, a, t]), float(upper[s, a, t])))
                    for t in np.flatnonzero(upper[s, a])
                ],
            )
            for a in np.flatnonzero(upper[s].any(axis=1))
        ]
        for s in range(len(lower))
    ]
    return _mdp(stormpy.Interval, stormpy.Interval(0.0), stormpy.Interval(1.0), states, goals)


def _require_rows(lower: Array, upper: Array, goals: Collection[int]) -> None:
    """Reject rows without a distribution: Storm accepts them silently and returns wrong values."""
    for s in set(range(len(lower))) - {int(g) for g in goals}:
        exists = upper[s].any(axis=1)
        low, high = lower[s][exists], upper[s][exists]
        if not exists.any():
            raise ValueError(f"state {s} has no action")
        if (low < 0).any() or (low > high).any() or lower[s][~exists].any():
            raise ValueError(f"state {s} has an interval that is empty or negative")
        if (low.sum(axis=1) > 1 + _SUM_TOLERANCE).any() or (high.sum(axis=1) < 1 - _SUM_TOLERANCE).any():
            raise ValueError(f"state {s} has an action without a distribution")


def _mdp(value_type: type, zero: Any, one: Any, states: Iterable[Choices], goals: Collection[int]) -> Any:
    """A sparse Storm MDP with goals labelled "goal", absorbing and free, and the action reward "cost"."""
    states = [[(zero, [(s, one)])] if s in goals else choices for s, choices in enumerate(states)]
    matrix = stormpy.datastructures.SparseMatrixBuilder[value_type](
        rows=sum(map(len, states)), columns=len(states), has_custom_row_grouping=True, row_groups=len(states)
    )
    costs: list[Any] = []
    for choices in states:
        matrix.new_row_group(len(costs))
        for cost, successors in choices:
            for successor, probability in successors:
                matrix.add_next_value(len(costs), successor, probability)
            costs.append(cost)
    labels = stormpy.models.StateLabeling(len(states))
    labels.add_label("goal")
    for goal in goals:
        labels.add_label_to_state("goal", int(goal))
    reward = stormpy.models.SparseRewardModel[value_type](optional_state_action_reward_vector=costs)
    return stormpy.models.SparseMdp[value_type](
        stormpy.models.SparseModelComponents[value_type](
            transition_matrix=matrix.build(), state_labeling=labels, reward_models={"cost": reward}
        )
    )


def _check(mdp: Any, formula: str, environment: Any = None) -> Array:
    """The value of every state; nature, where there is one, optimises with the controller."""
    known = isinstance(mdp, stormpy.models.SparseMdp[stormpy.Rational])
    result = stormpy.model_checking(
        mdp,
        stormpy.parse_property(formula),
        uncertainty_resolution_mode=None if known else stormpy.UncertaintyResolutionMode.COOPERATIVE,
        environment=environment,
    )
    return np.array([float(value) for value in result.get_value_vector()])


def _rational(value: Fraction) -> Any:
    """Storm's exact number."""
    return stormpy.Rational(f"{value.numerator}/{value.denominator}")
