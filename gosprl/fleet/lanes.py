"""The environments of a vector environment, one by one."""

from collections.abc import Mapping
from typing import Any

from gosprl.fleet.orders import Order
from gosprl.fleet.walking import Walker

Place = tuple[Any, Mapping[str, Any]]  # (observation, info)


class Lane:
    """One of the environments; as a system, it answers with what was written into it.

    Attributes
    ----------
    number
        Of the walker that it is now.
    place
        Where the environment is.
    fresh
        Whether it is at the start of an episode, and the learner has not seen it.
    over
        Whether its episode ended, and it was not reset.
    known
        Whether the learner knows where it is.
    """

    def __init__(self, env: Any) -> None:
        self.observation_space, self.action_space = env.single_observation_space, env.single_action_space
        self.order: Order | None = None
        self.number = -1
        self.walker: Walker | None = None
        self.place: Place = (None, {})
        self.outcome: tuple[Any, ...] = ()
        self.fresh = self.over = self.known = False

    def reset(self) -> Place:
        """Return where the episode began."""
        return self.place

    def step(self, action: Any) -> tuple[Any, ...]:
        """Return what the last step of this environment led to."""
        return self.outcome

    def begin(self, place: Place) -> None:
        """Note that the environment was reset."""
        self.place, self.fresh, self.over, self.known = place, True, False, False


def info_of(infos: Mapping[str, Any], i: int) -> dict[str, Any]:
    """Return the info of one environment."""
    found = {}
    for name, values in infos.items():
        if name.startswith("_") and name[1:] in infos:
            continue
        if isinstance(values, Mapping):
            if inner := info_of(values, i):
                found[name] = inner
        elif (mask := infos.get(f"_{name}")) is None or mask[i]:
            found[name] = values[i]
    return found
