"""The learnt system as a graph: states and the transitions seen between them, with a place for each.

Up to `MOST_STATES` states are drawn one by one. More are drawn in about `GROUPS` groups of states that are near each
other: the squares of a map, where states have places; otherwise some states, spread over all, are centres, and each
state belongs to the centre that it reaches, or is reached from, in the fewest transitions. Of the transitions, the most
frequent ones are drawn.

States have the places of a map or of given coordinates, otherwise a force-directed layout (networkx) from a fixed seed:
the same model gives the same picture.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from gosprl.model.empirical import EmpiricalModel
from gosprl.report.findings import Findings
from gosprl.report.places import Places

MOST_STATES = 1_200  # drawn one by one
GROUPS = 150
MOST_LINES = 2_500
ARROWS = 400  # lines up to which each shows its direction
SEED = 0
ROW, GAP = 16, 0.06  # points without transitions: how many in a row, and how far apart rows are

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Graph:
    """Points and the lines between them.

    Attributes
    ----------
    x, y
        [n] places in [0, 1], with the same scale in both directions.
    members
        [n] how many states each point stands for.
    state
        [n] the state of a point, or the centre of its group.
    visits, missing
        [n] sums over the states of a point.
    kind
        [n] "start", "ending", "missing", "some" (of a group: fewer than half of its states), "unvisited" or "".
    begin, end
        [m] points that lines join.
    count
        [m] transitions seen.
    left_out
        Number of lines that are not drawn.
    unseen
        Number of states that are not drawn: never seen, and nothing is needed of them.
    """

    x: Floats
    y: Floats
    members: Ints
    state: Ints
    visits: Ints
    missing: Ints
    kind: list[str]
    begin: Ints
    end: Ints
    count: Ints
    left_out: int
    unseen: int = 0

    @property
    def grouped(self) -> bool:
        """Whether a point stands for several states."""
        return bool((self.members > 1).any())

    @property
    def has_arrows(self) -> bool:
        """Whether lines have a direction."""
        return not self.grouped and len(self.begin) <= ARROWS


def graph_of(findings: Findings, places: Places | None) -> Graph | None:
    """Return the graph of what was learnt; None if there is no state."""
    model = findings.model
    if model is None or not len(findings.counts):
        return None
    proper = np.array([s for s in range(len(model.states)) if model.states.kind(s) != "reset"], dtype=np.int64)
    drawn = np.setdiff1d(proper, _hidden(findings, model, places))
    if not drawn.size:
        return None
    s, _, s_next, count = model.transitions()
    n = len(model.states)
    weight = sparse.coo_matrix((count, (s, s_next)), shape=(n, n)).tocsr()[drawn][:, drawn]
    places = None if places is None else _with_endings(places, model, drawn)
    group, centre = _groups(weight) if places is None else _squares(places, drawn)
    weight = _merged(weight, group, len(centre))
    begin, end, number, left_out = _lines(weight)
    totals = _totals(findings, drawn, group, len(centre))
    x, y = _layout(weight, places, drawn, group, len(centre))
    return Graph(
        x=x,
        y=y,
        members=np.bincount(group, minlength=len(centre)),
        state=drawn[centre],
        visits=totals[0],
        missing=totals[1],
        kind=_kinds(findings, model, drawn, group, totals),
        begin=begin,
        end=end,
        count=number,
        left_out=left_out,
        unseen=len(proper) - len(drawn),
    )


def _hidden(findings: Findings, model: EmpiricalModel, places: Places | None) -> Ints:
    """Return the states that are neither seen nor needed; those with places only where an ending takes their place."""
    unseen = np.flatnonzero(~findings.shown)
    if places is None:
        return unseen
    ended = {_live(model, int(s)) for s in model.states.finals}
    return np.array([s for s in unseen.tolist() if s in ended], dtype=np.int64)


def _live(model: EmpiricalModel, state: int) -> int:
    """Return the live state with the same observation; -1 if there is none."""
    return int(model.states.live(model.states.key(state)))


def _with_endings(places: Places, model: EmpiricalModel, drawn: Ints) -> Places | None:
    """Return places of final states, too: those of their observations; None if some drawn state has no place."""
    size = max(len(model.states), len(places.x))
    x, y = (np.append(each, np.full(size - len(each), np.nan)) for each in (places.x, places.y))
    for s in drawn[drawn >= len(places.x)].tolist():
        if 0 <= (at := _live(model, s)) < len(places.x):
            x[s], y[s] = x[at], y[at]
    found = places._replace(x=x, y=y)
    return found if found.known[drawn].all() else None


def _groups(weight: sparse.csr_matrix) -> tuple[Ints, Ints]:
    """Return the group of each state [n], and the state at the centre of each group."""
    n = weight.shape[0]
    if n <= MOST_STATES:
        return np.arange(n), np.arange(n)
    chosen = np.sort(np.random.default_rng(SEED).choice(n, GROUPS, replace=False))
    links = weight.astype(bool).astype(np.float64)
    _, _, source = csgraph.dijkstra(
        links, directed=False, indices=chosen, unweighted=True, min_only=True, return_predecessors=True
    )
    alone = source < 0  # reached from no centre: one group for all of them
    centre = np.append(chosen, np.flatnonzero(alone)[:1])
    source = np.where(alone, centre[-1], source)
    place = np.full(n, -1)
    place[centre] = np.arange(len(centre))
    return place[source], centre


def _squares(places: Places, drawn: Ints) -> tuple[Ints, Ints]:
    """Return the same of states that have places: the squares that they are in, and the first state of each."""
    if len(drawn) <= MOST_STATES:
        return np.arange(len(drawn)), np.arange(len(drawn))
    x, y = (each[drawn] - each[drawn].min() for each in (places.x, places.y))
    side = max(np.sqrt((np.ptp(x) or 1.0) * (np.ptp(y) or 1.0) / GROUPS), max(np.ptp(x), np.ptp(y)) / GROUPS, 1e-12)
    column, row = (x // side).astype(np.int64), (y // side).astype(np.int64)
    _, centre, group = np.unique(row * (column.max() + 1) + column, return_index=True, return_inverse=True)
    return group, centre


def _merged(weight: sparse.csr_matrix, group: Ints, groups: int) -> sparse.csr_matrix:
    """Return the transitions between groups."""
    if groups == weight.shape[0]:
        return weight
    found = weight.tocoo()
    return sparse.coo_matrix((found.data, (group[found.row], group[found.col])), shape=(groups, groups)).tocsr()


def _lines(weight: sparse.csr_matrix) -> tuple[Ints, Ints, Ints, int]:
    """Return the most frequent transitions between two points; of many, both directions are one line."""
    found = weight.tocoo()
    if (found.row != found.col).sum() > ARROWS:
        found = sparse.triu(weight + weight.T).tocoo()
    between = found.row != found.col
    begin, end, count = (part[between].astype(np.int64) for part in (found.row, found.col, found.data))
    order = np.lexsort((end, begin, -count))
    kept = order[:MOST_LINES]
    return begin[kept], end[kept], count[kept], len(order) - len(kept)


def _totals(findings: Findings, drawn: Ints, group: Ints, groups: int) -> tuple[Ints, Ints]:
    live = drawn < len(findings.counts)
    sums = []
    for values in (findings.visits, findings.missing):
        each = np.zeros(len(drawn))
        each[live] = values[drawn[live]]
        sums.append(np.bincount(group, weights=each, minlength=groups).astype(np.int64))
    return sums[0], sums[1]


def _kinds(findings: Findings, model: EmpiricalModel, drawn: Ints, group: Ints, totals: tuple[Ints, Ints]) -> list[str]:
    """Return what is special about each point; the start above all, then what is missing."""
    visits, missing = totals
    lacking = np.zeros(len(drawn))
    live = drawn < len(findings.counts)
    lacking[live] = findings.missing[drawn[live]] > 0
    share = np.bincount(group, weights=lacking, minlength=len(visits)) / np.bincount(group, minlength=len(visits))
    kinds = [
        "missing" if m and part >= 0.5 else "some" if m else "unvisited" if not v else ""
        for v, m, part in zip(visits, missing, share, strict=True)
    ]
    for i in np.flatnonzero(drawn >= len(findings.counts)).tolist():
        if not visits[group[i]]:
            kinds[group[i]] = "ending"
    if findings.start is not None and (at := np.flatnonzero(drawn == findings.start)).size:
        kinds[group[at[0]]] = "start"
    return kinds


def _layout(
    weight: sparse.csr_matrix, places: Places | None, drawn: Ints, group: Ints, groups: int
) -> tuple[Floats, Floats]:
    """Return places of points, with the same scale in both directions; the wider one ends at 1."""
    if places is not None:
        size = np.bincount(group, minlength=groups)
        points = np.stack([np.bincount(group, weights=each[drawn]) / size for each in (places.x, places.y)], axis=1)
    else:
        points = _apart(weight)
    points = points - points.min(axis=0)
    points /= max(points.max(), 1e-12)
    return points[:, 0], points[:, 1]


def _apart(weight: sparse.csr_matrix) -> Floats:
    """Return places [n, 2]: those with transitions by a force-directed layout, the others in rows below."""
    links = (weight + weight.T).tolil()
    links.setdiag(0)
    links = links.tocsr()
    links.eliminate_zeros()
    joined = np.diff(links.indptr) > 0
    found = np.zeros((len(joined), 2))
    if joined.any():
        found[joined] = _upright(_sprung(links[joined][:, joined]))
    alone = np.flatnonzero(~joined)
    wide = min(len(alone), max(ROW, 3 * int(np.sqrt(len(alone)))))
    below = found[:, 1].max() + GAP
    for i, point in enumerate(alone.tolist()):
        found[point] = i % wide / max(1, ROW - 1, wide - 1), below + GAP * (i // wide)
    return found


def _upright(points: Floats) -> Floats:
    """Return points turned so that they are wide rather than high, the first one on the left; the width is 1."""
    centred = points - points.mean(axis=0)
    turned = centred @ np.linalg.svd(centred, full_matrices=False)[2].T
    turned *= np.where(turned[0] > 0, -1.0, 1.0)
    width = np.ptp(turned[:, 0]) or 1.0
    return (turned - turned.min(axis=0)) / width  # type: ignore[no-any-return]


def _sprung(links: sparse.csr_matrix) -> Floats:
    """Return places [n, 2] by a force-directed layout."""
    import networkx

    n, pairs = links.shape[0], links.tocoo()
    graph = networkx.empty_graph(n)
    graph.add_edges_from(zip(pairs.row.tolist(), pairs.col.tolist(), strict=True))
    if n <= 80 and networkx.is_connected(graph):
        found = networkx.kamada_kawai_layout(graph)
    else:
        found = networkx.spring_layout(graph, pos=_unfolded(pairs, n), seed=SEED, iterations=60, method="force")
    return np.array([found[i] for i in range(n)])


def _unfolded(links: sparse.coo_matrix, n: int) -> dict[int, Floats]:
    """Return places to begin with: distances to two states that are far apart, which unfold long systems."""
    graph = links.tocsr().astype(bool).astype(np.float64)
    first = csgraph.dijkstra(graph, directed=False, indices=0, unweighted=True)
    there = np.where(np.isfinite(first), first, -1)
    far = int(np.argmax(there))
    from_far = csgraph.dijkstra(graph, directed=False, indices=far, unweighted=True)
    from_far = np.where(np.isfinite(from_far), from_far, n)
    middle = int(np.argmin(np.abs(from_far - from_far.max() / 2)))
    across = csgraph.dijkstra(graph, directed=False, indices=middle, unweighted=True)
    side = int(np.argmax(np.where(np.isfinite(across), across, -1) - np.abs(from_far - from_far[middle])))
    from_side = csgraph.dijkstra(graph, directed=False, indices=side, unweighted=True)
    from_side = np.where(np.isfinite(from_side), from_side, n)
    shaken = np.random.default_rng(SEED).normal(scale=0.05, size=(n, 2))
    points = np.stack([from_far, from_side], axis=1) / max(1.0, from_far.max()) + shaken
    return {i: points[i] for i in range(n)}
