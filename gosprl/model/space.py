"""The states of a model: known beforehand, or added as they are discovered.

Arrays by state and by row have room for some states more than are in use, and twice as many whenever it is used up: so
discovering a state costs a constant on average, and whoever keeps arrays of these sizes has to make them anew only
then (`rows` is another object). Rows of states not in use are enabled: where a model is planned with, such a state
stands for those not yet discovered.
"""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gosprl.errors import GosprlError, InputError
from gosprl.mdp.rows import Rows
from gosprl.model import pool
from gosprl.model.origins import Origin
from gosprl.model.states import States

if TYPE_CHECKING:
    from gosprl._kernels import Counts
    from gosprl.model.committed import CommittedModel

UNSAID: tuple[int, ...] = ()  # in the place of the actions that a state offers: that is not known yet
FEW = 8  # states that there is room for before the first is discovered
FEW_ACTIONS = 8  # that there is room for where their number is not known
PLACES = ("unknown", "unknown_until", "pending")  # attributes [R] that are empty where no outcome is unknown


class StateSpace:
    """States, their rows, and what is known of them besides counts; the attributes are those of `EmpiricalModel`."""

    rows: Rows
    known_rows: Rows  # of the states and actions known beforehand
    _counts: "Counts"

    def _begin(self, rows: Rows, fixed: bool) -> None:
        self.rows = self.known_rows = rows
        self.states = States(rows.num_states if fixed else 0)
        self.resets = "never"
        self.max_states = rows.num_states if fixed else None
        self.all_actions = True  # whether their number is known
        self.actions: Sequence[Any] = range(rows.num_actions)
        self.enabled = np.ones(len(rows), dtype=bool)
        self.certain = np.zeros(len(rows), dtype=bool)
        self.discovered: list[int] = []
        self.is_discovered = np.zeros(rows.num_states, dtype=bool)  # [S] the states in `discovered`, as a mask
        self.rank = np.zeros(rows.num_states, dtype=np.int64)  # [S] 1, 2, ... in order of discovery; 0 for final states
        self.terminal = np.zeros(rows.num_states, dtype=bool)
        self.aliased: set[int] = set()
        self._offers: dict[int, Sequence[int] | None] = {}  # what a state last offered; None: all actions
        self.masked = False  # whether a state ever offered less than all
        self.reset_cost = 1.0
        self.given: tuple[str, ...] = ()  # what was taken for granted of the samples, for guarantees
        self.origins: tuple[Origin, ...] = ()  # where they come from, as far as that is known
        self.ended = False  # whether an episode was seen to end: by an ending, a crash of the system, a truncation
        self.closed = False
        self.restricted_to = 0  # the id of what it was last restricted to
        self.followers: list[CommittedModel] = []  # models with counts of their own over these states and rows
        self.unknown, self.unknown_until, self.pending = np.empty((3, 0), dtype=np.int64)
        self._counts = pool.empty(np.zeros(len(rows), dtype=np.int64))

    @property
    def num_states(self) -> int:
        """S, the number of states known beforehand, or discovered; arrays by state have `rows.num_states` entries.

        The others are final states, the reset, and room for states not discovered yet (`gosprl.model.states`).
        """
        return self.states.fixed or len(self.discovered)

    @property
    def num_actions(self) -> int:
        """A, the number of actions; not all of them need to exist in every state."""
        return self.rows.num_actions

    def places(self) -> NDArray[np.int64]:
        """Return the numbers, among all rows, of the rows known beforehand."""
        return self.rows.places(self.known_rows)

    @property
    def growing(self) -> bool:
        """Whether states are discovered on the way, their number not being known."""
        return self.states.fixed == 0

    @property
    def num_outcomes(self) -> int | None:
        """The number of states that a step can lead to at most: confidence sets count with it. None: not known."""
        if self.max_states is None or self.resets == "never":
            return self.max_states
        return 2 * self.max_states + 1  # live ones, final ones, and the crash of the system

    @property
    def num_candidates(self) -> int:
        """The number of transitions (s, a, s_next) that may be possible; only where that is known."""
        if self.closed:
            return len(self._counts.succ)
        if self.num_pairs_bound is None or self.num_outcomes is None:
            raise InputError("num_candidates: the number of states is not known")
        return self.num_pairs_bound * self.num_outcomes

    @property
    def num_pairs_bound(self) -> int | None:
        """The number of rows whose outcome has to be learnt, at most; None: not known."""
        if self.max_states is None:
            return None
        if self.states.fixed == self.rows.num_states:
            return len(self.rows)
        learnt = int(self.rows.ptr[self.states.fixed]) if self.states.fixed else self.max_states * self.num_actions
        return learnt + (self.resets != "never")

    def discover(self, s: int) -> None:
        """Note that a walk started or arrived in state s: it is discovered."""
        if not self.is_discovered[s]:
            self.is_discovered[s] = True
            self.discovered.append(s)
            self.rank[s] = len(self.discovered) + (self.states.reset >= 0)

    def locate(self, key: Any, actions: Sequence[int] | None = None) -> int:
        """Return the live state of an observation, added if it is new.

        Parameters
        ----------
        key
            Stands for the observation: its number where their number is known, anything hashable elsewhere.
        actions
            The actions offered there; None: all; UNSAID: that is not known yet.
        """
        s = self.states.live(key)
        if s < 0:
            self.check_number(key)
            s = self._add("live", key)
            if self.resets == "anytime":
                self._lead(int(self.rows.ptr[s + 1]) - 1, self.states.reset)
        if not self.is_discovered[s]:
            self.discover(s)
        self.offer(s, actions)
        return s

    def check_number(self, key: Any) -> None:
        """Raise an error if an observation is one more than `max_states`."""
        if self.max_states is None or len(self.discovered) < self.max_states or self.states.live(key) >= 0:
            return
        raise GosprlError(
            f"max_states: expected at most {self.max_states} observations, got another: "
            f"{self.states.shown(key)!r:.80}; give a larger max_states"
        )

    def offer(self, s: int, actions: Sequence[int] | None) -> bool:
        """Take in which actions a discovered state offers now; whether that is something new.

        A state that was offered other actions before is aliased: the observation does not tell everything. All actions
        that it ever offered are its rows then.
        """
        if actions is UNSAID or self._offers.get(s, UNSAID) == actions:  # nearly always
            return False
        from gosprl import _kernels

        begin, end = self._offerable(s)
        offered = np.ones(end - begin, dtype=bool) if actions is None else np.isin(self.rows.action[begin:end], actions)
        if actions is not None and (np.ndim(actions) != 1 or offered.sum() != len(np.unique(actions))):
            raise InputError(
                f"actions: expected indices of the actions that a state offers, out of "
                f"{self.rows.action[begin:end].tolist()}, got {actions!r:.80}"
            )
        first = s not in self._offers
        self._offers[s] = actions
        self.masked = self.masked or actions is not None
        if np.array_equal(offered, self.enabled[begin:end]):
            return False
        taken = self._counts.visits[begin:end] > 0  # in data from before the run, which do not say what was offered
        if first and not (taken & ~offered).any():
            self.enabled[begin:end] = offered
        else:
            self.aliased.add(s)
            self.enabled[begin:end] = offered | (taken if first else self.enabled[begin:end])
        for counts in self._all_counts():
            _kernels.touch_many(counts, np.arange(begin, end))
        return True

    def offered(self, s: int) -> Sequence[int] | None:
        """Return what a state last offered; None: all actions, or that was not said."""
        return self._offers.get(s)

    def has_offered(self, s: int) -> bool:
        """Whether it was ever said what a state offers."""
        return s in self._offers

    def knows_offer(self, s: int) -> bool:
        """Whether it is known what a state offers: it was said, and always the same."""
        return s in self._offers and s not in self.aliased

    def _offerable(self, s: int) -> tuple[int, int]:
        """Return the rows of a state that its system may offer: all but the reset."""
        return int(self.rows.ptr[s]), int(self.rows.ptr[s + 1]) - (self.resets == "anytime")

    def final(self, key: Hashable) -> int:
        """Return the final state of an observation, added if it is new."""
        s = self.states.final(key)
        if s < 0:
            s = self._add("final", key)
            self._only_first_row(s)
            self._lead(int(self.rows.ptr[s]), self.states.reset)
        return s

    def allow_resets(self, resets: str) -> None:
        """Let there be endings, or resets at any time: add the reset, and what leads there.

        Parameters
        ----------
        resets
            "never", "terminal" or "anytime".
        """
        if resets == self.resets:
            return
        if resets == "anytime" and not self.all_actions:
            raise InputError(
                "resets: expected 'terminal' or 'never' where a function says which actions there are; for 'anytime', "
                "give actions= as a list of all of them"
            )
        if self.resets != "never" or self.closed:
            raise InputError(f"resets: the model was begun with {self.resets!r}, got {resets!r}")
        self.resets = resets
        if resets == "anytime":
            self._resize(self.rows.num_states, self.num_actions + 1)
        if resets != "never":
            reset = self._add("reset")
            self._only_first_row(reset)
            self.rank[reset] = 1
            if resets == "anytime":
                for s in range(self.states.fixed):
                    self._lead(int(self.rows.ptr[s + 1]) - 1, self.states.reset)

    def costs(self, ending: float = 0.0, known: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the cost of each row [R]: a step costs 1, a chosen reset `reset_cost`, one after an ending `ending`.

        With a positive `ending`, rows of states not in use have the least of these: they may turn out to be any.

        Parameters
        ----------
        ending
            What the way from a final state to the start costs; above 0 for planners that need positive costs.
        known
            Costs of the rows known beforehand, instead of 1.
        """
        cost = np.ones(len(self.rows))
        if known is not None:
            cost[self.places()] = known
        if self.resets != "never":
            cost[self.certain] = self.reset_cost
            cost[self.terminal[self.rows.state]] = ending / 2  # to the reset, and from there
            if ending > 0:
                cost[self.rows.state >= self.states.used] = min(1.0, ending / 2, self.reset_cost)
        return cost

    def widen(self, actions: int) -> None:
        """Make room for actions 0 .. actions - 1, where their number is not known."""
        if actions > self.num_actions:
            self._resize(self.rows.num_states, max(actions, 2 * self.num_actions))

    def _add(self, kind: str, key: Hashable = None) -> int:
        """Take the next free state; one more stays free, to stand for what is not discovered yet."""
        if self.states.used + 1 >= self.rows.num_states:
            self._resize(self.rows.num_states + max(FEW, self.states.used - self.states.fixed), self.num_actions)
        return self.states.add(kind, key)

    def _only_first_row(self, s: int) -> None:
        self.terminal[s] = True
        self.enabled[self.rows.ptr[s] + 1 : self.rows.ptr[s + 1]] = False

    def _lead(self, row: int, s: int) -> None:
        """Let it be known that a row always leads to s."""
        from gosprl import _kernels

        self.certain[row] = self.enabled[row] = True
        for model in (self, *self.followers):
            if len(model._counts.succ) == model._counts.scalars[_kernels.USED]:
                model.grow(1)
            counts = model._counts
            slot = int(counts.scalars[_kernels.USED])
            counts.start[row], counts.succ[slot], counts.number[slot] = slot, s, 0
            counts.length[row] = counts.capacity[row] = 1
            counts.scalars[_kernels.USED] += 1
            _kernels.touch_many(counts, np.array([row]))

    def follow(self, other: "CommittedModel") -> None:
        """Let a model have the states and rows of this one, also those to come."""
        self.followers.append(other)

    def _all_counts(self) -> "list[Counts]":
        return [self._counts, *(other._counts for other in self.followers)]

    def _resize(self, states: int, actions: int) -> None:
        """Make room for more states, and for an action more: everything gets a new place, so this is done rarely."""
        old = self.rows
        self.rows = old.enlarged(states, actions, self.states.fixed)
        row = self.rows.places(old)
        self._counts = pool.with_more_rows(self._counts, row, len(self.rows))
        if self.unknown.size:
            self._take_places(row, len(self.rows))
        for other in self.followers:
            other.take_rows(row, len(self.rows))
        enabled, certain = self.rows.state >= self.states.used, np.zeros(len(self.rows), dtype=bool)
        enabled[row], certain[row] = self.enabled, self.certain  # states in use do not offer what is new
        self.enabled, self.certain = enabled, certain
        more = states - old.num_states
        self.terminal = np.append(self.terminal, np.zeros(more, dtype=bool))
        self.is_discovered = np.append(self.is_discovered, np.zeros(more, dtype=bool))
        self.rank = np.append(self.rank, np.zeros(more, dtype=np.int64))

    def _take_places(self, row: NDArray[np.int64], size: int) -> None:
        """Have `size` rows, where the rows so far have the numbers `row` [R]."""
        for name in PLACES:
            larger = np.zeros(size, dtype=np.int64)
            larger[row] = getattr(self, name)
            setattr(self, name, larger)

    def grow(self, length: int) -> None:
        """Enlarge the pools: at least double them, so that a row of `length` successors can double."""
        self._counts = pool.with_larger_pool(self._counts, length)
