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
LARGE_COEFFICIENT = 1e9  # visits a departure from which on a state's equation is divided by them
LARGEST, INFINITE = 1e15, 1e20  # coefficients, and costs or bounds, that HiGHS refuses
LARGE_NEED = 1e6  # above it, the largest need is the unit of measurement: tolerances of HiGHS are absolute
FEASIBLE = 1e-6  # relative error of a solution that is accepted after the first attempt failed


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
    """Return the program for rows with the given successors (`ptr` [R + 1], `succ`, `prob` [nnz]) and cost [R].

    `pair` [R] and `state` [S] are the need, `law` [S] that of the first state, `escape` [R] the mass that goes
    anywhere, besides `prob`. `basis` is that of an earlier solution, used if it fits.
    """
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
        weight, times = _visits_per_departure(rows.state[counted], scale[counted], S)
        counted, weight = counted[weight > 0], weight[weight > 0]
        columns.append(counted)
        lines.append(number[rows.state[counted]])
        values.append(weight)
    column, line, value = np.concatenate(columns), np.concatenate(lines), np.concatenate(values)
    by_column = np.argsort(column, kind="stable")
    extra = np.zeros(2 * S if escape is not None else S)
    least = state[needed] * times[needed] if len(needed) else np.zeros(0)
    program = _Program(
        cost=np.append(cost / scale, extra),
        lower=np.append(pair * scale, extra),
        row_lower=np.concatenate([law, [0.0], least]),
        row_upper=np.concatenate([law, [0.0], np.full(len(needed), np.inf)]),
        start=np.append(0, np.cumsum(np.bincount(column, minlength=R + len(extra)))),
        index=line[by_column],
        value=value[by_column],
    )
    solver, unit = _run(program, basis)
    duals = np.array(solver.getSolution().row_dual)
    return Flow(solver.getInfo().objective_function_value / unit, duals[:S], solver.getBasis())


def _visits_per_departure(
    state: NDArray[np.int64], scale: NDArray[np.float64], S: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return 1 / scale of rows [n], and what they were multiplied by [S]: 1, or less if the solver would refuse them.

    Beside the largest of a state, coefficients that the solver would drop are 0.
    """
    most = np.zeros(S)
    np.maximum.at(most, state, 1 / scale)
    times = np.where(most > LARGE_COEFFICIENT, 1 / np.maximum(most, 1.0), 1.0)
    weight = times[state] / scale
    return np.where(weight > TOO_SMALL, weight, 0.0), times


def solve_model(
    model: EmpiricalModel,
    pair: NDArray[np.int64],
    state: NDArray[np.int64],
    start: int,
    escape: NDArray[np.float64] | None,
    pseudo: float = 0.0,
    basis: Any = None,
) -> Flow:
    """Return the program for the frequencies seen, from state `start`; resets cost nothing.

    What does not escape goes where it went before, with `pseudo` samples more for each stored successor.
    """
    ptr, succ, count, _ = model.stored(None)
    number = np.diff(ptr)
    kept = np.where(model.enabled, 1.0 if escape is None else 1 - escape, 0.0)
    visits = np.maximum(model.visits + pseudo * number, 1.0 if pseudo == 0 else pseudo)
    prob = np.repeat(kept, number) * (count + pseudo) / np.repeat(visits, number)
    cost = model.costs()
    law = np.zeros(model.num_states)
    law[start] = 1.0
    return solve(model.rows, ptr, succ, prob, cost, pair, state, law, escape, basis)


@dataclass(frozen=True, eq=False)
class _Program:
    """min cost x subject to x >= lower and row_lower <= A x <= row_upper; A [m, n] by columns."""

    cost: NDArray[np.float64]  # [n]
    lower: NDArray[np.float64]  # [n]
    row_lower: NDArray[np.float64]  # [m]
    row_upper: NDArray[np.float64]  # [m]
    start: NDArray[np.int64]  # [n + 1]
    index: NDArray[np.int64]  # [nnz] row of an entry
    value: NDArray[np.float64]  # [nnz]

    def check(self) -> None:
        """Refuse what the solver cannot take: it answers some of that with an error, and some with nonsense."""
        finite = (self.cost, self.lower, self.row_lower, self.value)
        if not all(np.all(np.isfinite(part)) for part in finite):
            raise PrecisionError(f"the fluid program has numbers that are not finite: {self}")
        if max(self.cost.max(initial=0), self.largest) >= INFINITE or np.abs(self.value).max(initial=0) >= LARGEST:
            raise PrecisionError(f"the fluid program has numbers that are too large for its solver: {self}")

    @property
    def largest(self) -> float:
        """The largest bound: a need, or the mass that starts somewhere."""
        return float(max(self.lower.max(initial=0), self.row_lower.max(initial=0)))

    def model(self, unit: float) -> Any:
        """Return the program for the solver, with all bounds multiplied by `unit`."""
        import highspy

        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.cost), len(self.row_lower)
        lp.col_cost_, lp.col_lower_ = self.cost, unit * self.lower
        lp.col_upper_ = np.full(lp.num_col_, highspy.kHighsInf)
        lp.row_lower_, lp.row_upper_ = unit * self.row_lower, unit * self.row_upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = self.start, self.index, self.value
        return lp

    def is_met_by(self, x: NDArray[np.float64]) -> bool:
        """Whether x is feasible up to a relative error of FEASIBLE."""
        column = np.repeat(np.arange(len(self.cost)), np.diff(self.start))
        m = len(self.row_lower)
        activity = np.bincount(self.index, weights=self.value * x[column], minlength=m)
        allowed = FEASIBLE * np.bincount(self.index, weights=np.abs(self.value * x[column]), minlength=m)
        rows = np.all(activity >= self.row_lower - allowed) and np.all(activity <= self.row_upper + allowed)
        return bool(rows and np.all(x >= (1 - FEASIBLE) * self.lower))

    def __str__(self) -> str:
        size = np.abs(self.value[self.value != 0])
        return (
            f"coefficients from {size.min(initial=np.inf):.2g} to {size.max(initial=0):.2g}, costs up to "
            f"{self.cost.max(initial=0):.2g}, needs up to {self.largest:.2g}"
        )


def _run(program: _Program, basis: Any) -> tuple[Any, float]:
    """Return (the solver after solving, the unit of its bounds).

    Begun at `basis` if that fits. Needs may be large, and an action taken many times for each visit that is needed, so
    the solver may end without an answer ("excessive primal values"), or say that there is no solution where rounding
    is as large as its tolerance. Then the program is solved again with the largest need as unit of measurement, by the
    primal simplex method and by interior points, and a solution is accepted if it is feasible in relative terms.
    """
    program.check()
    unit = 1.0 if program.largest <= LARGE_NEED else 2.0 ** -np.ceil(np.log2(program.largest))
    solver, infeasible, reason = _attempt(program.model(unit), basis, {})
    if not reason and (unit == 1 or program.is_met_by(np.array(solver.getSolution().col_value) / unit)):
        return solver, unit
    reasons = [reason]
    unit = 2.0 ** -np.ceil(np.log2(max(program.largest, 1.0)))
    for options in ({"simplex_strategy": 4}, {"solver": "ipm"}):
        solver, also_infeasible, reason = _attempt(program.model(unit), None, options)
        if not reason and program.is_met_by(np.array(solver.getSolution().col_value) / unit):
            return solver, unit
        if infeasible and (also_infeasible or not reason):
            break
        infeasible |= also_infeasible
        reasons.append(reason)
    if infeasible:
        raise Infeasible("some states are left for good before they were visited often enough")
    why = ", ".join(dict.fromkeys(each or "a solution that is not feasible" for each in reasons))
    raise GosprlError(f"the fluid program was not solved: {why}; {program}")


def _attempt(lp: Any, basis: Any, options: dict[str, Any]) -> tuple[Any, bool, str]:
    """Return (the solver, whether it says that there is no solution, why it has none: "" if it has one)."""
    import highspy

    solver = highspy.Highs()
    solver.silent()
    fits = basis is not None and (len(basis.col_status), len(basis.row_status)) == (lp.num_col_, lp.num_row_)
    try:
        for name, value in {"parallel": "off", **options}.items():
            if solver.setOptionValue(name, value) == highspy.HighsStatus.kError:
                return solver, False, f"the solver refused {name}={value}"
        if fits:
            solver.setOptionValue("presolve", "off")
        if solver.passModel(lp) == highspy.HighsStatus.kError:
            return solver, False, "the solver refused the program"
        if fits and solver.setBasis(basis) == highspy.HighsStatus.kError:
            solver.setOptionValue("presolve", "choose")  # another basis than expected: begin without one
        ran = solver.run()
    except Exception as error:  # whatever a foreign library may raise
        raise GosprlError(f"the fluid program was not solved: {error}") from error
    status = solver.getModelStatus()
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        return solver, True, "infeasible"
    if ran == highspy.HighsStatus.kError or status != highspy.HighsModelStatus.kOptimal:
        return solver, False, f"the solver ended with {ran.name}, {solver.modelStatusToString(status)}"
    return solver, False, ""
