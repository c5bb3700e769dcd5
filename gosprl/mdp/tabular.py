"""TabularMDP: a finite MDP known exactly, stored as sparse rows over the existing state-action pairs.

D_{ss'} = min_pi E[steps from s to s' under pi]        hitting_times()
D_{s'}  = max_{s != s'} D_{ss'}                        ssp_diameters(), of some goals: ssp_diameters(goals)
D       = max_{s'} D_{s'}                              diameter(), a lower bound: diameter(sample=100)
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosprl import _checks
from gosprl.errors import InputError
from gosprl.mdp.parts import Parts, as_blocks, join
from gosprl.mdp.toy_text import Table, read_environment, read_table

if TYPE_CHECKING:
    import os

    import gymnasium

NOISES = {"none": "none", "bernoulli": "bernoulli"}
MAX_DENSE = 50_000_000  # entries above which a dense copy is refused


class TabularMDP:
    """A finite MDP with known dynamics.

    Parameters
    ----------
    P
        Array [S, A, S] of transition probabilities, where a row of zeros means that the action does not exist in that
        state; or sparse parts `(s, a, s_next, p)`, four arrays of one length (repeated entries are added); or an
        iterator of such parts, each with later rows than those before, for MDPs whose parts do not fit into memory
        together.
    start
        The starting state s_0.
    rewards
        Mean rewards [S, A], or None.
    noise
        `"none"`: a step earns exactly the mean; `"bernoulli"`: it earns 1 with that probability, else 0.
    states, actions
        With sparse parts, S and A; by default one more than the largest that occurs. An iterator needs both.
    name, map
        For display: the name of the MDP, and the ASCII map whose non-wall cells are the states in reading order.

    Attributes
    ----------
    rows
        The existing pairs (R of them).
    ptr, succ, prob
        The successors of row r are `succ[ptr[r] : ptr[r + 1]]`, increasing, with probabilities
        `prob[ptr[r] : ptr[r + 1]]`, all positive.
    rewards
        Mean rewards [R], or None.
    start, noise, name, map
        As given.
    made_by
        (name, parameters) with which `gosprl.envs.make` made it; None: it was made otherwise, or changed.
    labels
        {name: states}, for model checkers; as read from a file, else empty.

    Raises
    ------
    InputError
        A row is not a distribution, a state has no action, or an argument is otherwise invalid.
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
        blocks, S, A = as_blocks(P, states, actions)
        self.rows, self.ptr, self.succ, self.prob = join(blocks, S, A)
        self.start = _checks.index("start", start, S, "a state")
        self.noise = _checks.choice("noise", noise, NOISES)
        self.rewards = None if rewards is None else self._row_rewards(rewards)
        self.name = name
        self.map = None if map is None else tuple(map)
        self.made_by: tuple[str, dict[str, Any]] | None = None
        self.labels: dict[str, tuple[int, ...]] = {}
        self._times: NDArray[np.float64] | None = None  # [S, S], once computed
        self._diameters: NDArray[np.float64] | None = None  # [S], once computed
        self._components: NDArray[np.int64] | None = None  # [S], once computed

    @property
    def num_states(self) -> int:
        """S, the number of states."""
        return self.rows.num_states

    @property
    def num_actions(self) -> int:
        """A, the number of actions; not all of them need to exist in every state."""
        return self.rows.num_actions

    def __repr__(self) -> str:
        """Return name, size and start on one line."""
        return f"TabularMDP({self.name}: {self.num_states} states, {len(self.rows)} pairs, start {self.start})"

    def _repr_html_(self) -> str:
        from gosprl.report.notebook import of_table

        return of_table(self)

    def with_rewards(self, rewards: ArrayLike, noise: str = "none") -> "TabularMDP":
        """Return the same MDP with other rewards.

        Parameters
        ----------
        rewards
            Mean rewards [S, A], or [S]: the same for all actions of a state.
        noise
            `"none"` or `"bernoulli"`, as in the constructor.

        Returns
        -------
        TabularMDP
            A copy that shares the dynamics.
        """
        means, shape = _checks.floats("rewards", rewards), (self.num_states, self.num_actions)
        if means.shape not in (shape, shape[:1]):
            raise InputError(
                f"rewards: expected mean rewards [S, A] = {shape} or [S] = {shape[:1]}, got shape {means.shape}"
            )
        if means.ndim == 1:
            means = np.broadcast_to(means[:, None], shape)
        other = copy(self)
        other.made_by = None
        other.noise = _checks.choice("noise", noise, NOISES)
        other.rewards = other._row_rewards(means)
        return other

    def p(self, s: int, a: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the possible next states of a pair [n], increasing, and their probabilities [n]."""
        row = int(self.rows.index(s, a))
        entries = slice(self.ptr[row], self.ptr[row + 1])
        return self.succ[entries].copy(), self.prob[entries].copy()

    def dense(self) -> NDArray[np.float64]:
        """Return P as an array [S, A, S]; `InputError` if that has more than 50 million entries."""
        S, A = self.num_states, self.num_actions
        if S * A * S > MAX_DENSE:
            raise InputError(f"dense: expected at most {MAX_DENSE} entries, got {S} x {A} x {S}; use ptr, succ, prob")
        P = np.zeros((S, A, S))
        row = np.repeat(np.arange(len(self.rows)), np.diff(self.ptr))
        P[self.rows.state[row], self.rows.action[row], self.succ] = self.prob
        return P

    def hitting_times(self, *, workers: int | None = None, progress: Any = None) -> NDArray[np.float64]:
        """Return the expected steps D_{ss'} of the fastest policy from s to s', certified to a relative 1e-9.

        Parameters
        ----------
        workers
            Threads that solve for different goals at the same time, by default one per core. The result does not
            depend on their number.
        progress
            True: show the progress on the terminal. A callable is given a dict {done, goals, rate} at most ten times a
            second, and at the end.

        Returns
        -------
        NDArray[np.float64]
            [S, S]; inf where no policy reaches s' with probability 1. Computed once, then copied.
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
        """Return the SSP-diameters D_{s'}: the largest D_{ss'} over the other states s.

        Takes O(S) memory, where `hitting_times` takes O(S^2).

        Parameters
        ----------
        goals
            The states s' to solve for [n]; by default all.
        workers, progress
            As in `hitting_times`.

        Returns
        -------
        NDArray[np.float64]
            One number for each goal, [n] or [S]; inf where some state cannot reach the goal with probability 1.
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
        """Return the diameter D, the largest D_{ss'}; inf unless the MDP is communicating.

        Parameters
        ----------
        sample
            For MDPs too large to solve for every goal: the number of goals s', drawn at random without replacement.
            The result is then the largest D_{s'} of these, a lower bound on D.
        seed
            Of the draw: a whole number or a generator.
        workers, progress
            As in `hitting_times`.
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
        """Return the index of each state's maximal communicating set [S], -1 if it is transient under every policy.

        Within such a set the agent can stay forever and go from any state to any other.
        """
        from gosprl.mdp.graph import communicating_classes

        return communicating_classes(self)

    def components(self) -> NDArray[np.int64]:
        """Return labels of the strongly connected components [S]: states with the same label can reach each other."""
        if self._components is None:
            from gosprl.mdp.graph import components

            self._components = components(self)
            self._components.flags.writeable = False  # every caller gets the same array
        return self._components

    def reachable(self, s: int) -> NDArray[np.bool_]:
        """Return the mask [S] of the states that some actions reach from s with positive probability, s included."""
        from gosprl.mdp.graph import reachable

        return reachable(self, _checks.index("s", s, self.num_states, "a state"))

    def is_communicating(self) -> bool:
        """Return whether every state can be reached from every other (Assumption 1 of the paper)."""
        return bool(np.all(self.communicating_classes() == 0))

    def is_weakly_communicating(self) -> bool:
        """Return whether there is one communicating class, and all other states are transient under every policy."""
        return int(self.communicating_classes().max()) == 0

    @classmethod
    def from_gymnasium(
        cls,
        env: "gymnasium.Env[Any, Any] | Table",
        start: int | None = None,
        *,
        terminals: str = "reset",
        name: str | None = None,
    ) -> "TabularMDP":
        """Build the MDP of a Gymnasium environment that publishes its table `P`, with its mean rewards.

        Parameters
        ----------
        env
            The environment, wrapped or not, or its table `P`: {state: {action: [(p, s_next, reward, terminated)]}},
            where lists may take the place of dicts. The environment itself or a wrapper has it.
        start
            The starting state. By default the one in which the environment starts, and 0 with a table. An environment
            that starts at random needs it.
        terminals
            `"reset"`: a state entered by a terminating transition has one action, 0, which leads to `start` with
            probability 1 and earns nothing; `"keep"`: such states keep the rows that the table gives them.
        name
            For display; by default the environment's id.

        Raises
        ------
        InputError
            The environment has no table, or starts at random and no `start` is given.
        """
        if isinstance(env, Mapping):
            table, start, default = env, 0 if start is None else start, "mdp"
        else:
            table, start, default = read_environment(env, start)
        given = read_table(table, start, terminals)
        return cls(
            given.parts,
            given.start,
            rewards=given.rewards,
            states=given.states,
            actions=given.actions,
            name=default if name is None else name,
        )

    @classmethod
    def from_drn(cls, file: "str | os.PathLike[str]", *, rewards: str | None = None) -> "TabularMDP":
        """Read an MDP from a file in Storm's DRN format.

        Parameters
        ----------
        file
            The file; its type is MDP or DTMC, its values are points, not intervals.
        rewards
            The reward structure to take; by default `reward`, or the only one besides `steps`.

        Raises
        ------
        InputError
            The file is not such an MDP; the message names the line.
        """
        from gosprl.exchange import drn

        return drn.read(file, rewards=rewards)

    @classmethod
    def from_prism(cls, *files: "str | os.PathLike[str]", rewards: str | None = None) -> "TabularMDP":
        """Read an MDP from PRISM's explicit files.

        Parameters
        ----------
        *files
            A directory with one `.tra` file and others beside it; or the files `.tra`, `.sta`, `.lab`, `.srew`,
            `.trew`, of which only the first is needed.
        rewards
            As in `from_drn`.

        Raises
        ------
        InputError
            The files are not such an MDP; the message names file and line.
        """
        from gosprl.exchange import prism

        return prism.read(*files, rewards=rewards)

    @classmethod
    def from_umb(cls, file: "str | os.PathLike[str]", *, rewards: str | None = None) -> "TabularMDP":
        """Read an MDP from a file in the Unified Markov Binary format; needs `pip install gosprl[umb]`.

        Parameters
        ----------
        file, rewards
            As in `from_drn`.

        Raises
        ------
        InputError
            The file is not such an MDP, or the package umbi is missing.
        """
        from gosprl.exchange import umb

        return umb.read(file, rewards=rewards)

    def to_drn(self, file: "str | os.PathLike[str]", *, force: bool = False) -> None:
        """Write the MDP to a file in Storm's DRN format, with its rewards and labels; `force` replaces a file."""
        from gosprl.exchange import drn

        drn.write(self, file, force=force)

    def to_prism(self, path: "str | os.PathLike[str]", *, force: bool = False) -> None:
        """Write the MDP to a new directory of PRISM's explicit files, or to a `.prism` file in its language."""
        from gosprl.exchange import prism

        prism.write(self, path, force=force)

    def to_umb(self, file: "str | os.PathLike[str]", *, force: bool = False) -> None:
        """Write the MDP to a file in the Unified Markov Binary format; needs `pip install gosprl[umb]`."""
        from gosprl.exchange import umb

        umb.write(self, file, force=force)

    def _row_rewards(self, rewards: ArrayLike) -> NDArray[np.float64]:
        means = _checks.floats("rewards", rewards)
        shape = (self.num_states, self.num_actions)
        if means.shape != shape:
            raise InputError(f"rewards: expected mean rewards [S, A] = {shape}, got shape {means.shape}")
        per_row = means[self.rows.state, self.rows.action]
        low, high = (0.0, 1.0) if self.noise == "bernoulli" else (-np.inf, np.inf)
        bad = np.flatnonzero(~(np.isfinite(per_row) & (low <= per_row) & (per_row <= high)))
        if bad.size:
            expected = "means in [0, 1] with noise='bernoulli'" if self.noise == "bernoulli" else "finite means"
            raise InputError(
                f"rewards: expected {expected}, got {per_row[bad[0]]} at (s, a) = {self.rows.pair(bad[0])}"
            )
        return per_row
