"""An environment of your own, as any Gymnasium environment: from stepping through it to a model and to a policy.

A courier carries parcels from the depot to the door and has to mind its battery. Prints what was learnt of a move, with
a certificate, and the policy by place and battery, with bounds on what it earns.
"""

import sys

import gymnasium
import numpy as np

import gosprl

PLACES, FULL = 3, 2  # the depot is place 0, the door the last one; the battery is 0 (empty) to 2
ACTIONS = ("←", "→", "charge")


class Courier(gymnasium.Env):
    """Whoever brings a parcel to the door earns 1; at the depot there is always a parcel, and a plug."""

    def __init__(self):
        self.observation_space = gymnasium.spaces.Discrete(PLACES * (FULL + 1) * 2)
        self.action_space = gymnasium.spaces.Discrete(len(ACTIONS))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.battery, self.parcel = 0, FULL, True
        return self.observation(), {}

    def step(self, action):
        luck = self.np_random.random()
        if ACTIONS[action] == "charge":
            self.battery += self.battery < FULL and luck < (0.9 if self.place == 0 else 0.3)
        elif self.battery > 0:
            self.place = min(max(self.place + (1 if ACTIONS[action] == "→" else -1), 0), PLACES - 1)
            self.battery -= luck < 0.4
        delivered = self.parcel and self.place == PLACES - 1
        self.parcel = self.place == 0 or (self.parcel and not delivered)
        return self.observation(), float(delivered), False, False, {}

    def observation(self):
        return np.int64((self.place * (FULL + 1) + self.battery) * 2 + self.parcel)


def told(s):
    place, rest = divmod(int(s), 2 * (FULL + 1))
    return f"place {place}, battery {rest // 2}, {'with a parcel' if rest % 2 else 'without'}"


def main(seed=0, eta=0.4, gamma=0.8, epsilon=0.5):
    estimate = gosprl.applications.estimate_model(Courier(), eta, seed=seed)
    s, a = estimate.model.discovered[0], ACTIONS.index("→")
    print(f"{estimate}\n\n   From {told(s)}, {ACTIONS[a]} leads to (certified within {estimate.eta[s, a]:.3f})")
    for s_next, p in zip(*estimate.model.p_hat(s, a), strict=True):
        print(f"      {told(s_next):<40}{p:.3f}")

    learnt = gosprl.applications.learn_policy(Courier(), gamma, epsilon, seed=seed)
    table = np.array([*ACTIONS, "·"])[learnt.policy].reshape(PLACES, FULL + 1, 2)
    print(f"\n{learnt}\n\n   battery{'with a parcel':>{9 * PLACES}}{'without (· cannot be)':>{9 * PLACES}}")
    for battery in range(FULL, -1, -1):
        signs = [*table[:, battery, 1], *table[:, battery, 0]]
        print(f"   {battery:>7}" + "".join(f"{sign:>9}" for sign in signs))
    print(f"{'':>10}" + 2 * (f"{'depot':>9}" + f"{'door':>{9 * (PLACES - 1)}}"))
    print(f"\n   from the start it earns {learnt.lower[s]:.2f} at least; none earns more than {learnt.upper[s]:.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
