"""The fluid program: what a need costs when samples flow instead of coming one by one.

For any policy that stops when b is met, lambda(s, a) = E[visits of (s, a)] satisfies lambda >= b and
    sum_a lambda(s, a) - sum_{s', a'} p(s | s', a') lambda(s', a') + e(s) = P(s_0 = s),
with e >= 0 the law of the last state. The least cost sum of lambda under these constraints is a linear program, solved
here by HiGHS. Its value bounds E[steps] from below (`gosprl.theory.limits`); its potentials, the duals v(s) of the
equations, price the states: v(s) <= c(s, a) + p v for every row, with equality for those that the flow takes more
often than b asks for. So a step on a row that is still needed loses nothing, to first order, and any other
step loses what c(s, a) + p v - v(s) says (`gosprl.strategies.practical`).

Where the dynamics are only estimated, a row may have some mass that goes wherever the program likes best: `escape`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import GosprlError, PrecisionError
from gosprl.mdp.rows import Rows
from gosprl.model.empirical import EmpiricalModel

TOO_SMALL = 1e-9  # coefficients that HiGHS drops


class Infeasible(GosprlError):
    """The program has no solution: some states are left for good before they were visited often enough."""


@dataclass(frozen=True, eq=False)
class Flow:
    """A solution of the program."""

    value: float  # the least cost
    potential: NDArray[np.float64]  # [S] at most 0
    basis: Any  # to begin the next one with


def solve(
    rows: Rows,
    ptr: NDArray[np.int64],
    succ: NDArray[np.int32],
    prob: NDArray[np.float64],
    cost: NDArray[np.float64],
    pair: NDArray[np.int64],
    state: NDArray[np.int64],
    law: NDArray[np.float64],
    escape: NDArray[np.float64] | None = None,
    basis: Any = None,
) -> Flow:
    """The program for rows with the given successors (`ptr` [R + 1], `succ`, `prob` [nnz]) and cost [R].

    `pair` [R] and `state` [S] are the need, `law` [S] that of the first state, `escape` [R] the mass that goes
    anywhere, besides `prob`. `basis` is that of an earlier solution, used if it fits.
    """
    import highspy

    S, R = rows.num_states, len(rows)
    row = np.repeat(np.arange(R), np.diff(ptr))
    away = succ != rows.state[row]
    leaving = np.bincount(row[away], weights=prob[away], minlength=R).astype(float)  # whole numbers if there are none
    if escape is not None:
        leaving += escape
    # Variables: the departures lambda (1 - p(s|s,a)) rather than the visits lambda, so that no coefficient is as small
    # as the probability to leave a state; rows that never leave have no departures, and are counted apart.
    stays = leaving == 0
    scale = np.where(stays, 1.0, leaving)
    arriving = prob[away] / scale[row[away]]
    if np.any((arriving <= TOO_SMALL) & (arriving > 0)):
        least = prob[away][arriving > 0].min()
        raise PrecisionError(f"P has probabilities of {least:g}, which the program's solver takes for zero")
    needed = np.flatnonzero(state)
    # Columns: R departures, S last states e, S arrivals of what escapes. Rows: S of flow, that what escapes arrives,
    # and a least number of visits for each state that has a need of its own.
    columns = [np.flatnonzero(~stays), row[away], R + np.arange(S)]
    lines = [rows.state[~stays], succ[away], np.arange(S)]
    values = [np.ones(int((~stays).sum())), -arriving, np.ones(S)]
    if escape is not None:
        flees = np.flatnonzero(escape > TOO_SMALL * scale)
        columns += [flees, R + S + np.arange(S), R + S + np.arange(S)]
        lines += [np.full(len(flees), S), np.arange(S), np.full(S, S)]
        values += [escape[flees] / scale[flees], -np.ones(S), -np.ones(S)]
    if len(needed):
        number = np.full(S, -1)
        number[needed] = S + 1 + np.arange(len(needed))
        counted = np.flatnonzero(number[rows.state] >= 0)
        columns.append(counted)
        lines.append(number[rows.state[counted]])
        values.append(1 / scale[counted])
    column, line, value = np.concatenate(columns), np.concatenate(lines), np.concatenate(values)
    by_column = np.argsort(column, kind="stable")
    extra = np.zeros(2 * S if escape is not None else S)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = R + len(extra), S + 1 + len(needed)
    lp.col_cost_, lp.col_lower_ = np.append(cost / scale, extra), np.append(pair * scale, extra)
    lp.col_upper_ = np.full(lp.num_col_, highspy.kHighsInf)
    lp.row_lower_ = np.concatenate([law, [0.0], state[needed].astype(float)])
    lp.row_upper_ = np.concatenate([law, [0.0], np.full(len(needed), highspy.kHighsInf)])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.append(0, np.cumsum(np.bincount(column, minlength=lp.num_col_)))
    lp.a_matrix_.index_, lp.a_matrix_.value_ = line[by_column], value[by_column]
    solver = _run(lp, basis)
    duals = np.array(solver.getSolution().row_dual)
    return Flow(solver.getInfo().objective_function_value, duals[:S], solver.getBasis())


def solve_model(
    model: EmpiricalModel,
    pair: NDArray[np.int64],
    state: NDArray[np.int64],
    start: int,
    escape: NDArray[np.float64] | None,
    pseudo: float = 0.0,
    basis: Any = None,
) -> Flow:
    """The program for the frequencies seen, from state `start`; resets cost nothing.

    What does not escape goes where it went before, with `pseudo` samples more for each stored successor.
    """
    ptr, succ, count, _ = model.stored(None)
    number = np.diff(ptr)
    kept = np.where(model.enabled, 1.0 if escape is None else 1 - escape, 0.0)
    visits = np.maximum(model.visits + pseudo * number, 1.0 if pseudo == 0 else pseudo)
    prob = np.repeat(kept, number) * (count + pseudo) / np.repeat(visits, number)
    cost = np.where(model.terminal[model.rows.state], 0.0, 1.0)
    law = np.zeros(model.num_states)
    law[start] = 1.0
    return solve(model.rows, ptr, succ, prob, cost, pair, state, law, escape, basis)


def _run(lp: Any, basis: Any) -> Any:
    """The solver after solving, begun at `basis` if that fits."""
    import highspy

    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("parallel", "off")
    fits = basis is not None and (len(basis.col_status), len(basis.row_status)) == (lp.num_col_, lp.num_row_)
    try:
        if fits:
            solver.setOptionValue("presolve", "off")
        solver.passModel(lp)
        if fits:
            solver.setBasis(basis)
        solver.run()
    except Exception as error:  # whatever a foreign library may raise
        raise GosprlError(f"the fluid program was not solved: {error}") from error
    status = solver.getModelStatus()
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        raise Infeasible("some states are left for good before they were visited often enough")
    if status != highspy.HighsModelStatus.kOptimal:
        raise GosprlError(f"the fluid program was not solved: {solver.modelStatusToString(status)}")
    return solver
