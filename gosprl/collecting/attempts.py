"""Attempts of any planner, checked before compiled code reads them."""

from typing import Any

import numpy as np

from gosprl.errors import InputError
from gosprl.model.empirical import EmpiricalModel
from gosprl.strategies.base import UNLIMITED, Attempt


def checked_attempt(attempt: Attempt, model: EmpiricalModel) -> Attempt:
    """Return an attempt whose arrays compiled code can read: right types, right shapes, one memory layout.

    O(1): what stands in the policy is checked where it is used, entry by entry. Arrays may be about the states known
    beforehand only: then the attempt ends in all others.
    """
    num_states, num_rows = model.rows.num_states, len(model.rows)
    policy, horizon = attempt.policy, attempt.horizon
    if (
        (_fits(policy, np.int64, num_states) or (_fits(policy, np.float64, num_rows) and not attempt.sample))
        and _fits(attempt.goals, np.bool_, num_states)
        and _fits(attempt.limit, np.int64, num_rows)
        and (type(horizon) is int and horizon > 0 and type(attempt.sample) is bool)
    ):
        return attempt
    if not isinstance(policy, np.ndarray) or policy.dtype not in (np.int64, np.float64):
        raise InputError(
            f"attempt.policy: expected rows, int64 [S] = ({num_states},), or probabilities, float64 [R] = "
            f"({num_rows},), got {_kind(policy)}"
        )
    if len(model.known_rows) < num_rows and model.resets != "anytime" and not model.growing:
        attempt = _extended(attempt, model)
        policy = attempt.policy
    size, axis = (num_states, "S") if policy.dtype == np.int64 else (num_rows, "R")
    checks = (
        ("policy", policy, policy.dtype, size, axis),
        ("goals", attempt.goals, np.dtype(np.bool_), num_states, "S"),
        ("limit", attempt.limit, np.dtype(np.int64), num_rows, "R"),
    )
    for field, array, dtype, length, name in checks:
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != (length,):
            raise InputError(f"attempt.{field}: expected {dtype} [{name}] = ({length},), got {_kind(array)}")
    if isinstance(horizon, bool) or not isinstance(horizon, (int, np.integer)) or horizon < 1:
        raise InputError(f"attempt.horizon: expected a whole number >= 1, got {horizon!r:.80}")
    if not isinstance(attempt.sample, (bool, np.bool_)):
        raise InputError(f"attempt.sample: expected True or False, got {attempt.sample!r:.80}")
    if attempt.sample and policy.dtype != np.int64:
        raise InputError("attempt.sample: expected False with a policy of probabilities; it needs a policy of rows")
    plain: Any = np.array(policy)  # of this class and layout, whatever it was
    return Attempt(plain, np.array(attempt.goals), np.array(attempt.limit), int(horizon), bool(attempt.sample))


def _extended(attempt: Attempt, model: EmpiricalModel) -> Attempt:
    """Return an attempt with the states and rows that come after those known beforehand, where it lacks them."""
    S, R, known = model.rows.num_states, len(model.rows), model.known_rows

    def longer(array: Any, few: int, size: int, fill: Any) -> Any:
        if not isinstance(array, np.ndarray) or array.shape != (few,):
            return array
        return np.append(array, np.full(size - few, fill, dtype=array.dtype))

    by_row = attempt.policy.dtype != np.int64
    policy = longer(attempt.policy, len(known), R, 1.0) if by_row else longer(attempt.policy, known.num_states, S, -1)
    goals = longer(attempt.goals, known.num_states, S, False)
    return Attempt(policy, goals, longer(attempt.limit, len(known), R, UNLIMITED), attempt.horizon, attempt.sample)


def _fits(array: Any, dtype: type, size: int) -> bool:
    """Whether compiled code can read an array as it is."""
    return type(array) is np.ndarray and array.dtype == dtype and array.shape == (size,) and array.flags.carray


def _kind(value: Any) -> str:
    return f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else f"{type(value).__name__}"
