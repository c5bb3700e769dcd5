"""The domains as Gymnasium environments: `gym.make("gosprl/riverswim6-v0")`, `gym.make("gosprl/wheel-v0", states=12)`.

Gymnasium 1.0 and later load no plugins, so the domains are registered when `gosprl` is imported. With
`gym.make("gosprl:gosprl/riverswim6-v0")` Gymnasium imports it.
"""

from gymnasium.envs import registration

READY = (
    "riverswim6",
    "riverswim36",
    "noisy_riverswim36",
    "wheel30",
    "four_room43",
    "corridor24",
    "room20",
    "cliff48",
    "trap10",
    "toy3",
)
FAMILIES = (
    "riverswim",
    "noisy_riverswim",
    "wheel",
    "gridworld",
    "open_grid",
    "garnet",
    "two_state_chain",
    "epsilon_wheel",
    "hard_to_learn",
)


def register() -> None:
    """Register `gosprl/<name>-v0` for each name in READY and FAMILIES, unless it is registered already."""
    for name in READY + FAMILIES:
        env_id = f"gosprl/{name}-v0"
        if env_id not in registration.registry:
            registration.register(
                env_id, entry_point="gosprl.envs.tabular_env:TabularEnv", kwargs={"name_or_mdp": name}
            )
