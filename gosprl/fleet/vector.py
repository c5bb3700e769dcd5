"""A Gymnasium vector environment as a fleet: its environments step together, or not at all.

`receive` makes one step of all environments as soon as every reset that was ordered is made. What then has no order is
stepped as well, since a vector environment cannot leave one out. Such a step is nobody's sample: that it would not
count was decided before it was made. The walker is lost, because it is not where the learner left it, and its
environment joins under a new number, to be reset.

How environments are reset after the end of an episode depends on the vector environment's `AutoresetMode`:

    DISABLED    resets are made when they are ordered, at any time
    SAME_STEP   the environment is at its next start already: that is what a reset reports
    NEXT_STEP   the step after the end resets: it answers the order to reset, and is no transition

In the last two, an episode that has not ended cannot be reset: an order to do so is refused, and an environment that
was stepped without an order is stepped on until its episode ends. A step takes as long as the slowest environment, and
`receive` waits for it whatever its time-out.
"""

import time
from collections import deque
from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

from gosprl.collecting.streams import Entropy, entropy_of
from gosprl.errors import GosprlError, InputError
from gosprl.fleet.lanes import Lane, Place, info_of
from gosprl.fleet.orders import RESET, Event, Executor, Joined, Lost, Order
from gosprl.fleet.walking import Facts, Walker, check_same, describe, reason, stream, trace_of
from gosprl.systems import as_system
from gosprl.systems.offers import Actions

IDLE = "it had no order when the other environments of the vector stepped"
DISABLE = "make the vector environment with autoreset_mode=gymnasium.vector.AutoresetMode.DISABLED"


class Vector(Executor):
    """The environments of a vector environment as walkers.

    Parameters
    ----------
    env
        The vector environment; it is closed with the executor.
    key, actions
        What tells states apart, and which actions there are, as in `gosprl.collect`.
    entropy
        The seed of the run.
    describe
        What `walking.describe` says of the learner's own copy; environments that differ are refused.
    """

    def __init__(
        self, env: Any, *, key: Any = None, actions: Any = None, entropy: Entropy = None, describe: Facts | None = None
    ) -> None:
        if not isinstance(env, VectorEnv):
            raise InputError(f"system: expected a gymnasium.vector.VectorEnv, got {type(env).__name__}")
        self._env, self._mode, self.workers = env, _mode(env), int(env.num_envs)
        self._key, self._given, self._facts = key, actions, describe
        self._seed = self._entropy = entropy
        self._actions = Actions(env.single_action_space, actions)
        self._lanes = [Lane(env) for _ in range(self.workers)]
        self._numbers = count()
        self._by_number: dict[int, Lane] = {}
        self._events: deque[Event] = deque()
        self._over = ""  # why there are no walkers any more

    def begin_with(self, begun: str) -> None:
        """Let the environments' random numbers follow from what was collected before, too."""
        self._entropy = entropy_of(self._seed, begun)

    def open(self) -> None:
        """Reset all environments; the resets that are ordered first report where they are."""
        for lane in self._lanes:
            self._renumber(lane)
        check_same(self._facts, describe(self._system(self._lanes[0])))
        for lane, place in zip(self._lanes, self._places(*self._env.reset(seed=self._seeds())), strict=True):
            lane.begin(place)

    def _seeds(self) -> Any:
        """Return the seed of each environment, as `Stepper` draws it; vector environments of other kinds take one."""
        seeds = [int(stream(self._entropy, i).integers(2**31)) for i in range(self.workers)]
        return seeds if isinstance(self._env.unwrapped, (SyncVectorEnv, AsyncVectorEnv)) else seeds[0]

    def send(self, order: Order) -> None:
        """Note an order until all walkers have one."""
        lane = self._by_number.get(order.walker)
        if lane is None:
            return  # gone; the learner is told, or was
        if lane.order is not None:
            raise GosprlError(f"walker {order.walker} has an open order, {lane.order.number}")
        if order.action != RESET and not lane.known:
            raise GosprlError(f"walker {order.walker} has to be reset before it steps")
        if order.action == RESET and lane.known and self._mode is not AutoresetMode.DISABLED:
            raise InputError(f"resets: this vector environment resets only where an episode ends; {DISABLE}")
        lane.order = order

    def receive(self, timeout: float | None = None) -> list[Event]:
        """Make the resets that were ordered, or else one step of all environments."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._events:
            if self._over:
                raise GosprlError(f"no walker is left: {self._over}")
            self._reset_ordered()
            if self._events:
                break
            left = None if deadline is None else deadline - time.monotonic()
            if all(lane.order is None for lane in self._lanes):
                if left is None:
                    raise GosprlError("no walker has an order: nothing will happen")
                time.sleep(max(0.0, left))
                break
            self._step()
            if left is not None and left <= 0:
                break
        events = list(self._events)
        self._events.clear()
        return events

    def dismiss(self, walker: int) -> None:
        """Give up on a walker; its environment joins under a new number."""
        lane = self._by_number.get(walker)
        if lane is not None:
            self._renumber(lane)

    def now(self) -> float:
        """Return the seconds on the monotonic clock."""
        return time.monotonic()

    def close(self) -> None:
        """Close the vector environment."""
        if self._over != "closed":
            self._over = "closed"
            self._by_number.clear()
            self._events.clear()
            self._env.close()

    def _system(self, lane: Lane) -> Any:
        return as_system(lane, self._key, self._given)

    def _renumber(self, lane: Lane) -> None:
        """Let the walker of an environment be a new one, which is not reset."""
        self._by_number.pop(lane.number, None)
        number = lane.number = next(self._numbers)
        lane.walker, lane.order, lane.known = Walker(self._system(lane), number, self._entropy), None, False
        self._by_number[number] = lane
        self._events.append(Joined(number))

    def _reset_ordered(self) -> None:
        """Answer all orders to reset that can be answered without a step."""
        waiting = [lane for lane in self._lanes if lane.order is not None and lane.order.action == RESET]
        if self._mode is AutoresetMode.DISABLED:
            self._reset_now([lane for lane in waiting if not lane.fresh])
        for lane in waiting:
            if lane.fresh:
                lane.known, lane.fresh = True, False
                self._answer(lane)

    def _reset_now(self, lanes: list[Lane]) -> None:
        """Reset some environments, where that is possible."""
        if not lanes:
            return
        mask = np.array([lane in lanes for lane in self._lanes])
        try:
            places = self._places(*self._env.reset(options={"reset_mask": mask}))
        except Exception as error:  # of an environment
            self._lose_all(error)
            return
        for lane, place, is_reset in zip(self._lanes, places, mask, strict=True):
            if is_reset:
                lane.begin(place)

    def _step(self) -> None:
        """Make a step of all environments."""
        if self._mode is AutoresetMode.DISABLED:
            self._reset_now([lane for lane in self._lanes if lane.over])
        space = self._env.single_action_space
        values = [self._value(lane) for lane in self._lanes]
        try:
            batch = concatenate(space, values, create_empty_array(space, self.workers))  # type: ignore[arg-type]
            observations, rewards, terminated, truncated, infos = self._env.step(batch)
        except Exception as error:  # of an environment: nobody knows which have stepped
            self._lose_all(error)
            return
        places = self._places(observations, infos)
        for i, (lane, place) in enumerate(zip(self._lanes, places, strict=True)):
            self._arrive(lane, i, place, (rewards[i], bool(terminated[i]), bool(truncated[i])), infos)

    def _arrive(self, lane: Lane, i: int, place: Place, rest: tuple[Any, bool, bool], infos: Mapping[str, Any]) -> None:
        """Note where a step has brought an environment."""
        if lane.over:  # only where the step after the end resets
            lane.begin(place)
            return
        ended, next_start = rest[1] or rest[2], None
        if ended and self._mode is AutoresetMode.SAME_STEP:
            next_start, place = place, (infos["final_obs"][i], info_of(infos["final_info"], i))
        lane.outcome = (place[0], *rest, dict(place[1]))
        lane.place, lane.fresh, lane.over = place, False, ended
        known, lane.known = lane.known, not ended
        if lane.order is not None and lane.order.action != RESET:
            self._answer(lane)
        else:
            lane.known = False
            if known:
                self._events.append(Lost(lane.number, IDLE))
                self._renumber(lane)
        if next_start is not None:
            lane.begin(next_start)

    def _answer(self, lane: Lane) -> None:
        """Report what an order led to, as it stands in the lane."""
        assert lane.order is not None
        assert lane.walker is not None
        order, lane.order = lane.order, None
        try:
            self._events.append(lane.walker.answer(order))
        except Exception as error:  # the environment broke the rules of systems
            self._events.append(Lost(lane.number, reason(error), trace_of(error)))
            self._renumber(lane)

    def _value(self, lane: Lane) -> Any:
        """Return the action that an environment takes: the one ordered, or any that is offered."""
        if lane.order is not None and lane.order.action != RESET:
            return self._actions.value(lane.order.action)
        try:
            offered = self._actions.offered(*lane.place)
        except GosprlError:  # nothing is offered where an episode ended
            offered = None
        return self._actions.value(offered[0] if offered else 0)

    def _places(self, observations: Any, infos: Mapping[str, Any]) -> list[Place]:
        """Return the observation and the info of each environment."""
        each = iterate(self._env.observation_space, observations)
        return [(observation, info_of(infos, i)) for i, observation in enumerate(each)]

    def _lose_all(self, error: Exception) -> None:
        why, trace = reason(error), trace_of(error)
        self._events.extend(Lost(lane.number, why, trace) for lane in self._lanes)
        self._by_number.clear()
        self._over = f"{why}\n{trace}"


def _mode(env: Any) -> AutoresetMode:
    given = env.metadata.get("autoreset_mode")
    try:
        return AutoresetMode(given)
    except ValueError:
        raise InputError(
            f"system: expected a vector environment that says how it resets, got metadata['autoreset_mode'] = "
            f"{given!r:.40}; {DISABLE}"
        ) from None
