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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import GosprlError, PrecisionError
from gosprl.mdp.rows import Rows
from gosprl.model.empirical import EmpiricalModel

TOO_SMALL = 1e-9  # coefficients that HiGHS drops
LARGE_COEFFICIENT = 1e14  # visits a departure above which a state's least number of visits is divided
LARGEST, INFINITE = 1e15, 1e20  # coefficients, and costs or bounds, that HiGHS refuses
LARGE_NEED = 1e6  # above it, the largest need is the unit of measurement: tolerances of HiGHS are absolute
FEASIBLE, OPTIMAL = 1e-10, 1e-6  # relative errors of an accepted solution: of each equation, and of the cost
ROUNDING = 1e-15  # relative error of an equation that may be due to rounding alone
ROUNDS = 8  # attempts at one program
PIVOTS = 10_000, 100  # steps of the simplex method in one attempt, at most: so many, and so many per row and column
RESTARTS: tuple[dict[str, Any], ...] = ({"presolve": "off"}, {}, {"simplex_strategy": 4})  # 4: the primal method
INFEASIBLE, INACCURATE = "infeasible", "a solution that is not accurate"


class Infeasible(GosprlError):
    """The program has no solution: some states are left for good before they were visited often enough."""


@dataclass(frozen=True, eq=False)
class Flow:
    """A solution of the program."""

    value: float  # the least cost
    potential: NDArray[np.float64]  # [S] at most 0
    basis: Any  # to begin the next one with
    visits: NDArray[np.float64] | None = None  # [R] lambda; None: not known
    gap: float = 0.0  # of an approximate solution: estimated relative error of the cost beyond the needed samples


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
    samples: NDArray[np.bool_] | None = None,
) -> Flow:
    """Return the program for rows with the given successors (`ptr` [R + 1], `succ`, `prob` [nnz]) and cost [R].

    `pair` [R] and `state` [S] are the need, `law` [S] that of the first state, `escape` [R] the mass that goes
    anywhere, besides `prob`. `basis` is that of an earlier solution, used if it fits. `samples` [R] are the rows that
    count for the need of their state; None: all.
    """
    S, R = rows.num_states, len(rows)
    row = np.repeat(np.arange(R), np.diff(ptr))
    away = succ != rows.state[row]
    leaving = np.bincount(row[away], weights=prob[away], minlength=R).astype(float)  # whole numbers if there are none
    if escape is not None:
        # what the solver would drop must not be missing elsewhere: a loss, however small, counts after many visits
        escape = np.where(escape > TOO_SMALL * (leaving + escape), escape, 0.0)
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
        flees = np.flatnonzero(escape)
        columns += [flees, R + S + np.arange(S), R + S + np.arange(S)]
        lines += [np.full(len(flees), S), np.arange(S), np.full(S, S)]
        values += [escape[flees] / scale[flees], -np.ones(S), -np.ones(S)]
    if len(needed):
        number = np.full(S, -1)
        number[needed] = S + 1 + np.arange(len(needed))
        counted = np.flatnonzero((number[rows.state] >= 0) & (True if samples is None else samples))
        weight, times = _visits_per_departure(rows.state[counted], scale[counted], S)
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
    least_cost, x, duals, last = _run(program, basis)
    return Flow(least_cost, duals[:S], last, x[:R] / scale)


def _visits_per_departure(
    state: NDArray[np.int64], scale: NDArray[np.float64], S: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return 1 / scale of rows [n], and what it was multiplied by [S]: 1, or less if the solver would refuse it."""
    most = np.zeros(S)
    np.maximum.at(most, state, 1 / scale)
    times = np.minimum(LARGE_COEFFICIENT / np.maximum(most, 1.0), 1.0)
    return times[state] / scale, times


def solve_model(
    model: EmpiricalModel,
    pair: NDArray[np.int64],
    state: NDArray[np.int64],
    start: int | Sequence[int] | NDArray[np.float64],
    escape: NDArray[np.float64] | None,
    pseudo: float = 0.0,
    basis: Any = None,
) -> Flow:
    """Return the program for the frequencies seen; resets after endings cost nothing, chosen ones `reset_cost`.

    What does not escape goes where it went before, with `pseudo` samples more for each stored successor. `start` is the
    state that the walk is in, those of several walks, or how many walks begin in each state (floats [S]).
    """
    ptr, succ, prob, cost, law = program_of_model(model, start, escape, pseudo)
    return solve(model.rows, ptr, succ, prob, cost, pair, state, law, escape, basis, ~model.certain)


def program_of_model(
    model: EmpiricalModel,
    start: int | Sequence[int] | NDArray[np.float64],
    escape: NDArray[np.float64] | None,
    pseudo: float,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return (ptr, succ, prob, cost, law) of the program for the frequencies seen, as `solve` takes them."""
    ptr, succ, count, _ = model.stored(None)
    number = np.diff(ptr)
    kept = np.where(model.enabled, 1.0 if escape is None else 1 - escape, 0.0)
    visits = np.maximum(model.visits + pseudo * number, 1.0 if pseudo == 0 else pseudo)
    prob = np.repeat(kept, number) * (count + pseudo) / np.repeat(visits, number)
    prob = np.where(np.repeat(model.certain, number), np.repeat(kept, number), prob)  # needs no visit to be known
    return ptr, succ, prob, model.costs(), _law(start, model.rows.num_states)


def _law(start: int | Sequence[int] | NDArray[np.float64], S: int) -> NDArray[np.float64]:
    if isinstance(start, np.ndarray) and start.dtype == float:
        return start
    law = np.zeros(S)
    np.add.at(law, np.asarray(start, dtype=np.int64), 1.0)
    return law


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

    def model(self, unit: float, x: NDArray[np.float64], slack: float) -> Any:
        """Return, for the solver, the program of what is to be added to x, with all bounds multiplied by `unit`.

        Equations that x meets up to the relative error `slack` may be missed by as much.
        """
        import highspy

        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.cost), len(self.row_lower)
        lp.col_cost_, lp.col_lower_ = self.cost, unit * (self.lower - x)
        lp.col_upper_ = np.full(lp.num_col_, highspy.kHighsInf)
        activity, size = self.activity(x)
        room = np.where(np.abs(self.lack(x)) <= slack * size, slack * size, 0.0)
        lp.row_lower_ = unit * (self.row_lower - activity - room)
        lp.row_upper_ = unit * (self.row_upper - activity + room)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = self.start, self.index, self.value
        return lp

    def activity(self, x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (A x, |A| |x|), each [m]."""
        terms = self.value * np.repeat(x, np.diff(self.start))
        return self._by_row(terms), self._by_row(np.abs(terms))

    def _by_row(self, terms: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums [m] of numbers of the entries [nnz]."""
        return np.bincount(self.index, terms, len(self.row_lower)).astype(float)  # whole numbers if there are none

    def lack(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what is to be added to A x [m] so that it is between its bounds."""
        activity, _ = self.activity(x)
        return np.clip(activity, self.row_lower, self.row_upper) - activity

    def is_solved_by(self, x: NDArray[np.float64], dual: NDArray[np.float64]) -> bool:
        """Whether x >= lower meets each equation, and costs what the duals [m] say is the least, in relative terms.

        An equation is compared with its own terms: some states see much less than others. What is much smaller than
        any x that is asked for does not count: differences of equal numbers leave that much.
        """
        asked = np.concatenate([self.lower, self.row_lower / np.maximum(self._by_row(np.abs(self.value)), 1.0)])
        _, size = self.activity(x)
        if np.any(np.abs(self.lack(x)) > FEASIBLE * (size + asked[asked > 0].min(initial=1.0))):
            return False
        column = np.repeat(np.arange(len(self.cost)), np.diff(self.start))
        reduced = self.cost - np.bincount(column, self.value * dual[self.index], len(self.cost))
        cost, bound = float(self.cost @ x), float(dual @ self.row_lower + reduced @ self.lower)
        return abs(cost - bound) <= OPTIMAL * max(cost, 1.0)

    def __str__(self) -> str:
        size = np.abs(self.value[self.value != 0])
        return (
            f"coefficients from {size.min(initial=np.inf):.2g} to {size.max(initial=0):.2g}, costs up to "
            f"{self.cost.max(initial=0):.2g}, needs up to {self.largest:.2g}"
        )


def _run(program: _Program, basis: Any) -> tuple[float, NDArray[np.float64], NDArray[np.float64], Any]:
    """Return (the least cost, x [n], the duals [m], the basis). Begun at `basis` if that fits.

    The solver's tolerances are absolute, but needs and the chances to leave a state differ by many orders of magnitude:
    what it takes for a solution may miss all that is needed in some state. So each answer is checked in relative terms,
    and what it lacks is the right-hand side of the next program, in a unit that makes it about 1 (iterative
    refinement). If there is no answer, the next attempt begins with what is needed, and nothing else.

    "Infeasible" must be said twice. After an answer, it may be that rounding took away more than there is to start
    with: then equations that hold up to rounding may be missed by as much.
    """
    program.check()
    x, slack = np.zeros(len(program.cost)), 0.0
    unit = 1.0 if program.largest <= LARGE_NEED else _unit(program.largest)
    options: dict[str, Any] = {}
    restarts = iter(RESTARTS)
    reasons: list[str] = []
    for number in range(ROUNDS):
        solver, reason = _attempt(program.model(unit, x, slack), basis, options)
        if not reason:
            solution, basis = solver.getSolution(), solver.getBasis()
            x = np.maximum(x + np.array(solution.col_value) / unit, program.lower)
            duals = np.array(solution.row_dual)
            if program.is_solved_by(x, duals):
                first = solver.getInfo().objective_function_value / unit
                return first if number == 0 else float(program.cost @ x), x, duals, basis
        elif reason == INFEASIBLE and reasons[-1:] == [INACCURATE]:
            slack = ROUNDING
        elif reason == INFEASIBLE and INFEASIBLE in reasons:
            raise Infeasible("some states are left for good before they were visited often enough")
        else:
            x, basis, slack, options = program.lower, None, 0.0, next(restarts, {})
        reasons.append(reason or INACCURATE)
        unit = _unit(float(np.abs(program.lack(x)).max(initial=0)))
    raise GosprlError(f"the fluid program was not solved: {', '.join(dict.fromkeys(reasons))}; {program}")


def _unit(largest: float) -> float:
    """Return the power of 2 that makes a number about 1."""
    return float(2.0 ** -np.ceil(np.log2(largest))) if largest > 0 else 1.0


def _attempt(lp: Any, basis: Any, options: dict[str, Any]) -> tuple[Any, str]:
    """Return (the solver, why it has no solution: "" if it has one, INFEASIBLE if it says that there is none)."""
    import highspy

    solver = highspy.Highs()
    solver.silent()
    fits = basis is not None and (len(basis.col_status), len(basis.row_status)) == (lp.num_col_, lp.num_row_)
    try:
        most = PIVOTS[0] + PIVOTS[1] * (lp.num_col_ + lp.num_row_)  # a limit of time would not be the same each time
        for name, value in {"parallel": "off", "simplex_iteration_limit": most, **options}.items():
            if solver.setOptionValue(name, value) == highspy.HighsStatus.kError:
                return solver, f"the solver refused {name}={value}"
        if fits:
            solver.setOptionValue("presolve", "off")
        if solver.passModel(lp) == highspy.HighsStatus.kError:
            return solver, "the solver refused the program"
        if fits and solver.setBasis(basis) == highspy.HighsStatus.kError:
            solver.setOptionValue("presolve", "choose")  # another basis than expected: begin without one
        ran = solver.run()
    except Exception as error:  # whatever a foreign library may raise
        raise GosprlError(f"the fluid program was not solved: {error}") from error
    status = solver.getModelStatus()
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        return solver, INFEASIBLE
    if ran == highspy.HighsStatus.kError or status != highspy.HighsModelStatus.kOptimal:
        return solver, f"the solver ended with {ran.name}, {solver.modelStatusToString(status)}"
    return solver, ""
