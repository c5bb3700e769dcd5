"""TabularMDP: a finite MDP known exactly, stored as sparse rows over the existing state-action pairs.

D_{ss'} = min_pi E[steps from s to s' under pi]        hitting_times()
D_{s'}  = max_{s != s'} D_{ss'}                        ssp_diameters(), of some goals ssp_diameters(goals)
D       = max_{s'} D_{s'}                              diameter(), a lower bound diameter(sample=100)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp.rows import Rows

SUM_TOLERANCE = 1e-6  # how far a row may be from summing to one before it is an error; within, it is renormalised
ENTRY_BYTES = 140  # that making an MDP of sparse parts takes for each of them, at most
STATE_BYTES = 24  # and for each state
NOISES = {"none": "none", "bernoulli": "bernoulli"}
DENSE_LIMIT = 50_000_000  # entries above which a dense copy is refused

Parts = tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]  # (s, a, s_next, p), of one length
Entries = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]  # the same, checked
ToyText = Mapping[int, Mapping[int, Sequence[tuple[float, int, float, bool]]]]


class TabularMDP:
    """A finite MDP with known dynamics.

    Parameters
    ----------
    P
        Array [S, A, S] of transition probabilities, where a row of zeros means that the action does not exist in
        that state; or sparse parts `(s, a, s_next, p)`, four arrays of one length (repeated entries add up); or an
        iterator of such parts, each of later rows than those before, so that they need not all be there at once.
    start
        The starting state s_0.
    rewards
        Optional mean rewards [S, A].
    noise
        `"none"`: a step earns exactly the mean; `"bernoulli"`: it earns 1 with that probability, else 0.
    states, actions
        With sparse parts, S and A; by default one more than the largest that occurs. An iterator needs both.
    name, map
        For display: what the MDP is called, and the ASCII map whose non-wall cells are the states in reading order.

    Attributes
    ----------
    rows
        The existing pairs (R of them). The successors of row r are `succ[ptr[r]:ptr[r+1]]`, increasing, with
        probabilities `prob[ptr[r]:ptr[r+1]]`, all positive.
    rewards
        Mean rewards [R], or None.
    """

    def __init__(
        self,
        P: ArrayLike | Parts | Iterator[Parts],
        start: int = 0,
        *,
        rewards: ArrayLike | None = None,
        noise: str = "none",
        states: int | None = None,
        actions: int | None = None,
        name: str = "mdp",
        map: Sequence[str] | None = None,
    ) -> None:
        blocks, S, A = _blocks(P, states, actions)
        self.rows, self.ptr, self.succ, self.prob = _joined(blocks, S, A)
        self.start = _checks.index("start", start, S, "a state")
        self.noise = _checks.choice("noise", noise, NOISES)
        self.rewards = None if rewards is None else self._row_rewards(rewards)
        self.name = name
        self.map = None if map is None else tuple(map)
        self._times: NDArray[np.float64] | None = None  # [S, S], once computed
        self._diameters: NDArray[np.float64] | None = None  # [S], once computed
        self._components: NDArray[np.int64] | None = None  # [S], once computed

    @property
    def num_states(self) -> int:
        return self.rows.num_states

    @property
    def num_actions(self) -> int:
        return self.rows.num_actions

    def __repr__(self) -> str:
        return f"TabularMDP({self.name}: {self.num_states} states, {len(self.rows)} pairs, start {self.start})"

    def with_rewards(self, rewards: ArrayLike, noise: str = "none") -> "TabularMDP":
        """The same MDP with these mean rewards, [S, A], or [S]: the same for all actions of a state."""
        means, shape = _checks.floats("rewards", rewards), (self.num_states, self.num_actions)
        if means.shape not in (shape, shape[:1]):
            raise InputError(
                f"rewards: expected mean rewards [S, A] = {shape} or [S] = {shape[:1]}, got shape {means.shape}"
            )
        if means.ndim == 1:
            means = np.broadcast_to(means[:, None], shape)
        other = copy(self)
        other.noise = _checks.choice("noise", noise, NOISES)
        other.rewards = other._row_rewards(means)
        return other

    def p(self, s: int, a: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The possible next states of a pair, increasing, and their probabilities."""
        row = int(self.rows.index(s, a))
        piece = slice(self.ptr[row], self.ptr[row + 1])
        return self.succ[piece].copy(), self.prob[piece].copy()

    def dense(self) -> NDArray[np.float64]:
        """P as an array [S, A, S]; small MDPs only."""
        S, A = self.num_states, self.num_actions
        if S * A * S > DENSE_LIMIT:
            raise InputError(f"dense: {S} x {A} x {S} entries are too many (limit {DENSE_LIMIT}); use ptr, succ, prob")
        P = np.zeros((S, A, S))
        row = np.repeat(np.arange(len(self.rows)), np.diff(self.ptr))
        P[self.rows.state[row], self.rows.action[row], self.succ] = self.prob
        return P

    def hitting_times(self, *, workers: int | None = None, progress: Any = None) -> NDArray[np.float64]:
        """[S, S] expected steps D_{ss'} of the fastest policy from s to s'; inf where none arrives surely.

        Computed once. `workers` threads (by default one a core) share the goals, with the same result whatever their
        number. `progress=True` shows on the terminal how far it is; a callable is given a dict {done, goals, rate} at
        most ten times a second, and at the end.
        """
        if self._times is None:
            S = self.num_states
            instead = "ssp_diameters(goals=...) and diameter(sample=...) take one array [S] at a time"
            _checks.memory(f"hitting_times: [S, S] = [{S}, {S}], and a copy,", 16 * S * S, instead)
            from gosprl.mdp.distances import hitting_times

            self._times = hitting_times(self, workers, progress)
        return self._times.copy()

    def ssp_diameters(
        self, goals: ArrayLike | None = None, *, workers: int | None = None, progress: Any = None
    ) -> NDArray[np.float64]:
        """[S] D_{s'}: the largest D_{ss'} over the other states s; or only those of the states `goals`, as many.

        Takes O(S) memory, where `hitting_times` takes O(S^2); `workers` and `progress` are those of `hitting_times`.
        """
        if self._diameters is None and self._times is not None:
            self._diameters = self._times.max(axis=0)
        if self._diameters is None:
            from gosprl.mdp.distances import ssp_diameters

            if goals is not None:
                return ssp_diameters(self, self._goals(goals), workers, progress)
            self._diameters = ssp_diameters(self, np.arange(self.num_states), workers, progress)
        return self._diameters.copy() if goals is None else self._diameters[self._goals(goals)]

    def diameter(
        self,
        *,
        sample: int | None = None,
        seed: int | np.random.Generator = 0,
        workers: int | None = None,
        progress: Any = None,
    ) -> float:
        """D, the largest D_{ss'}; inf unless the MDP is communicating.

        With `sample`, a lower bound for MDPs too large to solve for every goal: D is at least this, the largest D_{s'}
        of so many goals s', drawn at random without replacement. `workers` and `progress` are those of `hitting_times`.
        """
        goals = None
        if sample is not None and _checks.whole("sample", sample, 1) < self.num_states:
            goals = np.random.default_rng(seed).choice(self.num_states, sample, replace=False)
        return float(self.ssp_diameters(goals, workers=workers, progress=progress).max())

    def _goals(self, goals: ArrayLike) -> NDArray[np.int64]:
        checked = _checks.integers("goals", goals, 0, self.num_states, "states")
        if checked.ndim != 1 or checked.size == 0:
            raise InputError(f"goals: expected an array of at least one state, got shape {checked.shape}")
        return checked

    def communicating_classes(self) -> NDArray[np.int64]:
        """[S] number of the largest communicating set that each state is in, -1 where it is transient in every policy.

        Within such a set the agent can stay for ever and go from any state to any other.
        """
        from gosprl.mdp.graph import communicating_classes

        return communicating_classes(self)

    def components(self) -> NDArray[np.int64]:
        """[S] labels of the strongly connected components: states with the same label can reach each other."""
        if self._components is None:
            from gosprl.mdp.graph import components

            self._components = components(self)
        return self._components

    def reachable(self, s: int) -> NDArray[np.bool_]:
        """[S] which states can be reached from s, with positive probability by some actions; s itself included."""
        from gosprl.mdp.graph import reachable

        return reachable(self, _checks.index("s", s, self.num_states, "a state"))

    def is_communicating(self) -> bool:
        """Whether every state can be reached from every other (Assumption 1 of the paper)."""
        return bool(np.all(self.communicating_classes() == 0))

    def is_weakly_communicating(self) -> bool:
        """Whether there is one communicating class, and all other states are transient in every policy."""
        return int(self.communicating_classes().max()) == 0

    @classmethod
    def from_gymnasium(cls, P: ToyText, start: int = 0, *, terminals: str = "reset", name: str = "mdp") -> "TabularMDP":
        """From the table `env.unwrapped.P` of a Gymnasium toy-text environment, mean rewards included.

        terminals
            `"reset"`: a state entered by a terminating transition has one action, 0, which leads to `start` surely
            and earns nothing; `"keep"`: such states keep the rows that the table gives them.
        """
        entries = [
            (s, a, s_next, p, r, bool(done))
            for s, actions in P.items()
            for a, outcomes in actions.items()
            for p, s_next, r, done in outcomes
        ]
        if not entries:
            raise InputError("P: expected a table {state: {action: [(p, s_next, reward, terminated), ...]}}, got {}")
        s, a, s_next, p, r, done = (np.array(column) for column in zip(*entries, strict=True))
        S = int(max(s.max(), s_next.max())) + 1
        if _checks.choice("terminals", terminals, {"reset": True, "keep": False}):
            _checks.index("start", start, S, "a state")
            terminal = np.unique(s_next[done & (p > 0)])
            keep = ~np.isin(s, terminal)
            ones = np.ones(len(terminal))
            s, a = np.append(s[keep], terminal), np.append(a[keep], 0 * terminal)
            s_next, p = np.append(s_next[keep], start + 0 * terminal), np.append(p[keep], ones)
            r = np.append(r[keep], 0 * ones)
        A = int(a.max()) + 1
        _checks.memory(f"P: rewards [S, A] = [{S}, {A}]", 8 * S * A, "number states and actions without gaps")
        rewards = np.bincount(s * A + a, weights=p * r, minlength=S * A).reshape(S, A)
        return cls((s, a, s_next, p), start, rewards=rewards, states=S, actions=A, name=name)

    def _row_rewards(self, rewards: ArrayLike) -> NDArray[np.float64]:
        means = _checks.floats("rewards", rewards)
        shape = (self.num_states, self.num_actions)
        if means.shape != shape:
            raise InputError(f"rewards: expected mean rewards [S, A] = {shape}, got shape {means.shape}")
        per_row = means[self.rows.state, self.rows.action]
        low, high = (0.0, 1.0) if self.noise == "bernoulli" else (-np.inf, np.inf)
        bad = np.flatnonzero(~(np.isfinite(per_row) & (low <= per_row) & (per_row <= high)))
        if bad.size:
            wanted = "means in [0, 1] with noise='bernoulli'" if self.noise == "bernoulli" else "finite means"
            raise InputError(f"rewards: expected {wanted}, got {per_row[bad[0]]} at (s, a) = {self.rows.pair(bad[0])}")
        return per_row


def _blocks(P: Any, states: int | None, actions: int | None) -> tuple[Iterable[Entries], int, int]:
    """P as checked sparse parts, with S and A."""
    if isinstance(P, Iterator):
        if states is None or actions is None:
            raise InputError("states, actions: expected both with an iterator of sparse parts")
        S, A = _sized(_checks.whole("states", states, 1)), _checks.whole("actions", actions, 1)
        return (_entries(parts, S, A) for parts in P), S, A
    if not (isinstance(P, tuple) and len(P) == 4):
        entries, S, A = _dense_entries(P, states, actions)
        return [entries], S, A
    entries = _entries(P, states, actions)
    S = int(max(entries[0].max(), entries[2].max())) + 1 if states is None else states
    A = int(entries[1].max()) + 1 if actions is None else actions
    return [entries], _sized(S), A


def _sized(states: int) -> int:
    """The number of states, if arrays of that length are possible."""
    _checks.memory(f"states: {states} of them", STATE_BYTES * states, "number the states without gaps, or take fewer")
    return states


def check_size(what: str, entries: int) -> None:
    """Refuse an MDP of so many transitions if it does not fit into memory."""
    _checks.memory(f"{what}: {entries} transitions", ENTRY_BYTES * entries, "try fewer")


def _dense_entries(P: Any, states: int | None, actions: int | None) -> tuple[Entries, int, int]:
    if isinstance(P, np.ndarray) and P.dtype != np.float64:
        _checks.memory(f"P: {P.shape} as doubles", 8 * P.size, "give sparse parts (s, a, s_next, p)")
    try:
        array = np.asarray(P, dtype=float)
    except ValueError as error:
        raise InputError(f"P: expected probabilities [S, A, S] or sparse parts (s, a, s_next, p): {error}") from None
    if array.ndim != 3 or array.shape[0] != array.shape[2] or 0 in array.shape:
        raise InputError(
            f"P: expected probabilities [S, A, S] or sparse parts (s, a, s_next, p), got an array {array.shape}"
        )
    S, A, _ = array.shape
    if states not in (None, S) or actions not in (None, A):
        raise InputError(f"states, actions: P has S = {S} and A = {A}, got {states} and {actions}")
    s, a, s_next = np.nonzero(array)
    return (s, a, s_next, array[s, a, s_next]), S, A


def _entries(parts: Any, states: int | None, actions: int | None) -> Entries:
    arrays = [np.atleast_1d(np.asarray(part)) for part in parts]
    shapes = [array.shape for array in arrays]
    if len(arrays) != 4 or len(set(shapes)) != 1 or arrays[0].ndim != 1 or arrays[0].size == 0:
        raise InputError(f"P: expected four arrays (s, a, s_next, p) of one length, got shapes {shapes}")
    check_size("P", arrays[0].size)
    huge = np.iinfo(np.int32).max
    bound = huge if states is None else min(huge, _checks.whole("states", states, 1))
    s = _checks.integers("P[0] (s)", arrays[0], 0, bound, "states")
    a = _checks.integers(
        "P[1] (a)", arrays[1], 0, None if actions is None else _checks.whole("actions", actions, 1), "actions"
    )
    s_next = _checks.integers("P[2] (s_next)", arrays[2], 0, bound, "states")
    return s, a, s_next, _checks.floats("P[3] (p)", arrays[3])


def _joined(
    blocks: Iterable[Entries], S: int, A: int
) -> tuple[Rows, NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """(rows, ptr, succ, prob) of blocks of entries, the rows of each after those of the blocks before."""
    piles: tuple[_Pile, ...] = (_Pile(np.int64), _Pile(np.int64), _Pile(np.int32), _Pile(np.float64))
    last = -1
    for block in blocks:
        pieces: tuple[NDArray[Any], ...] = _compress(*block, S, A)
        keys = pieces[0]
        if keys.size and keys[0] <= last:
            s, a = divmod(int(keys[0]), A)
            raise InputError(f"P: expected parts of later rows than those before, got (s, a) = ({s}, {a}) after them")
        last = keys[-1] if keys.size else last
        for pile, piece in zip(piles, pieces, strict=True):
            pile.add(piece)
    row_keys, length, succ, prob = (pile.whole() for pile in piles)
    ptr = np.zeros(len(row_keys) + 1, dtype=np.int64)
    np.cumsum(length, out=ptr[1:])
    return Rows.from_keys(row_keys, S, A), ptr, succ, prob


class _Pile:
    """An array that grows at its end: a list of pieces, put together at last, would take its room twice."""

    def __init__(self, dtype: Any) -> None:
        self._array = np.empty(0, dtype=dtype)
        self._used = 0

    def add(self, piece: NDArray[Any]) -> None:
        begin, self._used = self._used, self._used + len(piece)
        if self._used > len(self._array):
            self._array.resize(self._used + (self._used // 8 if begin else 0), refcheck=False)
        self._array[begin : self._used] = piece

    def whole(self) -> NDArray[Any]:
        self._array.resize(self._used, refcheck=False)
        return self._array


def _compress(
    s: NDArray[np.int64], a: NDArray[np.int64], s_next: NDArray[np.int64], p: NDArray[np.float64], S: int, A: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Sort the entries into rows, check that each row is a distribution, renormalise it, drop zeros.

    Returns the keys s * A + a of the rows, their lengths, successors and probabilities.
    """
    bad = np.flatnonzero(~(np.isfinite(p) & (p >= 0)))
    if bad.size:
        i = bad[0]
        raise InputError(
            f"P: expected probabilities >= 0, got {p[i]} at (s, a, s_next) = ({s[i]}, {a[i]}, {s_next[i]})"
        )
    keys = (s * A + a) * S + s_next
    if not np.all(p > 0):
        keys, p = keys[p > 0], p[p > 0]
    if np.any(keys[1:] <= keys[:-1]):
        order = np.argsort(keys, kind="stable")  # fast where entries are nearly in order
        keys, p = keys[order], p[order]
        new = _firsts(keys)
        keys, p = keys[new], np.bincount(np.cumsum(new) - 1, weights=p).astype(np.float64)
    row_keys = keys // S
    first = np.flatnonzero(_firsts(row_keys))
    row_keys = row_keys[first]
    sums = np.add.reduceat(p, first)
    off = np.flatnonzero(np.abs(sums - 1) > SUM_TOLERANCE)
    if off.size:
        pair = divmod(int(row_keys[off[0]]), A)
        raise InputError(
            f"P: every row must sum to one (or be all zeros), the row of (s, a) = {pair} sums to {sums[off[0]]:.9g}"
        )
    length = np.diff(first, append=len(keys))
    return row_keys, length, (keys % S).astype(np.int32), p / np.repeat(sums, length)


def _firsts(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where sorted keys differ from the one before."""
    return np.concatenate([np.ones(min(1, len(keys)), dtype=bool), keys[1:] != keys[:-1]])
