"""The fluid program of large systems, approximately, with a bounded amount of work.

The program is that of `gosprl.planning.fluid`. With x = lambda - b the visits beyond the need it reads

    min c x   over x >= 0   with   B x <= g,     (B x)(s) = sum_a x(s, a) - sum_{s', a'} p(s | s', a') x(s', a'),

where g(s), the supply, is P(s_0 = s) plus what the needed samples bring to s, minus what they take away. Its dual is
max g v over v <= 0 with v(s) <= c(s, a) + p v for every row: the potential. A need of a state adds a price y(s) >= 0
of each visit. What escapes goes to an additional state, the hub, which leads to any of the TARGETS states of least
potential for nothing (`basis` gives this potential).

Method. The primal-dual hybrid gradient method, as in PDLP (Applegate et al. 2021), with diagonal step sizes (Pock and
Chambolle 2011), in the reflected Halpern form with restarts (Lu and Yang 2024). One step takes time in proportion to
the stored successors. The number of steps is given by the caller, never by a clock. An earlier solution is a good
start, since needs change little: x is scaled by the ratio of the needs, and v moves slowly at first. Its potential is
returned if it still proves more. PDLP as in HiGHS takes many times as many steps, and its answers prove no bound: the
level of v, which prices do not depend on, converges last. Here it follows from max v = 0.

Certificate. Any v <= 0 becomes a potential: it is lowered where a row violates v <= c + p v, REPAIRS times, then
divided by 1 + rho, with rho the largest relative violation left, then shifted to max v = 0. The shift does not change
differences, and no constraint: all probabilities sum to 1. `value` is what this potential proves, so it never exceeds
the least cost, however few steps were made.

The gap compares this bound with the cost of x. What x lacks is counted as if it were moved from the farthest states.
That is an estimate, not a bound. With a small need, few steps leave a large gap: then the potential should not be used.

Infeasible. If the graph of the system is strongly connected, the program has a solution. If it is not, but has at most
PARTS strong components, a set of states without entry from outside must be able to pay for its own needs. Other
infeasible programs are not detected; their potentials decrease without bound as steps are made.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import PrecisionError
from gosprl.mdp.rows import Rows
from gosprl.model.empirical import EmpiricalModel
from gosprl.planning.fluid import Flow, Infeasible, program_of_model

TARGETS = 16  # states that what escapes may go to
REPAIRS = 8  # times that a potential is lowered before it is scaled
FREE = 100  # times that it is lowered by rows that cost nothing; such rows follow each other seldom
PARTS = 32
GENTLE = 0.05  # first weight of a warm start, in units of that of a cold one: x has to change, v hardly
ROUNDING = 1e-12

Floats = NDArray[np.float64]


class Start(NamedTuple):
    """What the next solution begins with."""

    x: Floats  # [R]
    v: Floats  # [S]
    y: Floats  # [S]
    hub: tuple[float, Floats, NDArray[np.int64]]  # its potential, and the visits [k] of its targets [k]
    needed: float  # samples


def solve(
    rows: Rows,
    ptr: NDArray[np.int64],
    succ: NDArray[np.int32],
    prob: Floats,
    cost: Floats,
    pair: NDArray[np.int64],
    state: NDArray[np.int64],
    law: Floats,
    escape: Floats | None = None,
    basis: Any = None,
    samples: NDArray[np.bool_] | None = None,
    *,
    work: float = 1e8,
) -> Flow:
    """Return the program's approximate solution; the arguments are those of `gosprl.planning.fluid.solve`.

    `work` bounds the stored successors, rows and states that the steps visit, besides a fixed number of passes for the
    certificate. At least one step is made. `basis` is that of an earlier approximate solution, used if it fits.
    """
    from gosprl import _kernels

    S, R = rows.num_states, len(rows)
    start = basis if isinstance(basis, Start) and len(basis.v) == S and len(basis.x) == R else None
    if escape is not None and not escape.any():
        escape = None
    targets = _targets(S, start, state, rows, pair) if escape is not None else np.zeros(0, dtype=np.int64)
    net, fixed = _network(rows, ptr, succ, prob, cost, pair, state, law, escape, samples, targets)
    hub = S if escape is not None else -1
    if hub < 0:
        _check_parts(net)
    needed = float(pair.sum() + state.sum())
    at, unit = _begin(net, start, targets, needed), _weight(net)
    first = unit if start is None else GENTLE * unit
    size = len(net.succ) + len(net.cost) + len(net.supply)
    before = None if start is None else _potential(net, at.v.copy(), hub)
    _kernels.flow_steps(net, at, first, unit, max(1, int(work / size)))
    v, proven = _potential(net, at.v_to, hub)
    if before is not None and before[1] > proven:
        v, proven = before
    # to move what is short from anywhere to where it lacks costs about the range of the potential
    above = float(net.cost @ at.x_to) + _kernels.shortage(net, at.x_to, at.arriving) * float(-v.min())
    at_hub = (float(at.v_to[S]) if hub >= 0 else 0.0, at.x_to[R:], targets)
    last = Start(at.x_to[:R], at.v_to[:S], at.y_to[:S], at_hub, needed)
    return Flow(fixed + proven, v[:S], last, gap=_relative(above - proven, above))


def solve_model(
    model: EmpiricalModel,
    pair: NDArray[np.int64],
    state: NDArray[np.int64],
    start: int | Sequence[int],
    escape: Floats | None,
    pseudo: float = 0.0,
    basis: Any = None,
    *,
    work: float = 1e8,
) -> Flow:
    """Return the approximate solution for the frequencies seen, as `gosprl.planning.fluid.solve_model` does."""
    ptr, succ, prob, cost, law = program_of_model(model, start, escape, pseudo)
    samples = ~model.certain
    return solve(model.rows, ptr, succ, prob, cost, pair, state, law, escape, basis, samples, work=work)


def _targets(
    S: int, start: Start | None, state: NDArray[np.int64], rows: Rows, pair: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the states that what escapes may go to: those of least potential, or at first of the largest need."""
    merit = start.v if start is not None else -(np.bincount(rows.state, pair, S) + state).astype(float)
    return np.sort(np.argsort(merit, kind="stable")[:TARGETS])


def _network(
    rows: Rows,
    ptr: NDArray[np.int64],
    succ: NDArray[np.int32],
    prob: Floats,
    cost: Floats,
    pair: NDArray[np.int64],
    state: NDArray[np.int64],
    law: Floats,
    escape: Floats | None,
    samples: NDArray[np.bool_] | None,
    targets: NDArray[np.int64],
) -> tuple[Any, float]:
    """Return (the program of x for the kernels, the cost of the needed samples of pairs)."""
    from gosprl import _kernels

    S, R, hub, k = rows.num_states, len(rows), int(escape is not None), len(targets)
    row = np.repeat(np.arange(R), np.diff(ptr))
    away = (succ != rows.state[row]) & (prob > 0)
    source, to, chance = row[away], succ[away], prob[away]
    if escape is not None:
        flees = np.flatnonzero(escape > 0)
        source = np.concatenate([source, flees, R + np.arange(k)])
        to = np.concatenate([to, np.full(len(flees), S), targets]).astype(np.int32)
        chance = np.concatenate([chance, escape[flees], np.ones(k)])
        order = np.argsort(source, kind="stable")
        source, to, chance = source[order], to[order], chance[order]
    need = np.append(pair, np.zeros(k)).astype(float)
    of_row = np.append(rows.state, np.full(k, S))
    leave: Floats = np.bincount(source, chance, R + k).astype(float)
    counted = np.append(np.ones(R) if samples is None else samples, np.zeros(k)).astype(float)
    supply = np.append(law, np.zeros(hub)) - np.bincount(of_row, need * leave, S + hub)
    supply += np.bincount(to, chance * need[source], S + hub)
    extra: Floats = np.append(state, np.zeros(hub)).astype(float) - np.bincount(of_row, need * counted, S + hub)
    extra[np.append(state, np.zeros(hub)) == 0] = 0.0
    costs = np.append(cost, np.zeros(k))
    if not all(np.all(np.isfinite(part)) for part in (supply, extra, costs, chance)):
        raise PrecisionError("the fluid program has numbers that are not finite")
    row_ptr = np.append(rows.ptr, rows.ptr[-1] + k) if hub else rows.ptr
    starts = np.append(0, np.cumsum(np.bincount(source, minlength=R + k)))
    sizes = np.zeros(R + k), np.zeros(S + hub), np.zeros(S + hub)
    begin, to = np.ascontiguousarray(row_ptr, dtype=np.int64), np.ascontiguousarray(to)
    net = _kernels.Network(begin, starts, to, chance, leave, costs, counted, supply, extra, *sizes)
    _kernels.step_sizes(net)
    return net, float(cost @ pair)


def _relative(gap: float, size: float) -> float:
    return max(gap, 0.0) / size if size > 0 else 0.0


def _begin(net: Any, start: Start | None, targets: NDArray[np.int64], needed: float) -> Any:
    """Return where the iteration begins."""
    from gosprl import _kernels

    n, m = len(net.supply), len(net.cost)
    x, v, y = np.zeros(m), np.zeros(n), np.zeros(n)
    if start is not None:
        S, R = len(start.v), len(start.x)
        less = needed / start.needed if start.needed > 0 else 1.0
        x[:R], v[:S], y[:S] = less * start.x, start.v, start.y
        if n > S:
            v[S], visits, earlier = start.hub
            place = np.searchsorted(targets, earlier)
            same = (place < len(targets)) & (targets[np.minimum(place, len(targets) - 1)] == earlier)
            x[R + place[same]] = less * visits[same]
        y[net.extra <= 0] = 0.0
    made = (x, v, y, x.copy(), v.copy(), y.copy(), x.copy(), v.copy(), y.copy(), np.zeros(n), np.zeros(n))
    return _kernels.Iterate(*made)


def _weight(net: Any) -> float:
    """Return the first weight of the step sizes: the size of the costs over that of the supply, as PDLP does."""
    return float(np.sqrt(net.cost @ net.cost) / max(np.sqrt(net.supply @ net.supply), 1.0)) or 1.0


def _potential(net: Any, values: Floats, hub: int) -> tuple[Floats, float]:
    """Return (a potential near `values` [n], what it proves); 0 if rows that cost nothing violate it."""
    from gosprl import _kernels

    v, slack = np.minimum(values, 0.0), np.empty(len(net.cost))
    for _ in range(REPAIRS):
        if _kernels.lower_potential(net, v, hub, False) == 0:
            break
    for _ in range(FREE):
        if _kernels.lower_potential(net, v, hub, True) <= ROUNDING * -v.min():
            break
    else:
        v[:] = 0.0
    if hub >= 0:  # it may be lower than any other, which proves less
        v[hub] = v[:hub].min()
    v /= _kernels.slacks(net, v, slack)
    v -= v.max()
    _kernels.slacks(net, v, slack)
    proven = _kernels.proven_cost(net, v, slack)
    if proven < 0:  # nothing is proven: v = 0 does better
        v[:] = 0.0
        _kernels.slacks(net, v, slack)
        proven = max(0.0, _kernels.proven_cost(net, v, slack))
    return v, proven


def _check_parts(net: Any) -> None:
    """Raise if a strong component, with all states that lead to it, has less supply than it needs."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    n = len(net.supply)
    state = np.repeat(np.arange(n), np.diff(net.row_ptr))
    of_entry = np.repeat(state, np.diff(net.ptr))
    graph = csr_array((np.ones(len(net.succ), dtype=np.int8), (of_entry, net.succ)), shape=(n, n))
    parts, label = connected_components(graph, directed=True, connection="strong")
    if not 1 < parts <= PARTS:
        return
    back = csr_array((np.ones(len(net.succ), dtype=np.int8), (net.succ, of_entry)), shape=(n, n))
    tolerance = 1e-9 * (1 + float(np.abs(net.supply).sum()))
    for part in range(parts):
        before = breadth_first_order(back, int(np.argmax(label == part)), return_predecessors=False)
        if net.supply[before].sum() < -tolerance:
            raise Infeasible("some states are left for good before they were visited often enough")
