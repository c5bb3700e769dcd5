"""Compile once, before tests run side by side: everything that they need, into the cache on disk.

python -m pytest tests/warm_up.py
"""

import time

import gymnasium
import numpy as np

import gosprl
from gosprl import applications


def test_everything_compiles():
    river, begin = gosprl.envs.make("riverswim6"), time.perf_counter()
    paid = river.with_rewards(np.linspace(0, 1, 6), noise="bernoulli")
    gosprl.collect(river, 2, seed=0)
    for options in ({}, {"confidence": "bernstein"}, {"dynamics": river}, {"successors": river}, {"planning": "full"}):
        gosprl.collect(river, 2, seed=0, strategy="gosprl", **options)
    gosprl.collect(river, 1, seed=0, strategy="zero_one_ucrl")
    gosprl.collect(river, np.arange(6), seed=0, prior=True)
    lake = gymnasium.make("FrozenLake-v1")
    gosprl.collect(lake, 1, seed=0, max_steps=50)
    gosprl.collect(lake, 1, seed=0, max_steps=50, prior=True, key=lambda o, info: divmod(int(o), 4))
    river.hitting_times()
    applications.estimate_model(river, 1.0, seed=0, max_steps=50)
    applications.estimate_model(river, 0.9, norm="max", seed=0, max_steps=50)
    applications.estimate_diameter(river, 1.0, seed=0, max_steps=50)
    applications.explore_all_goals(river, 1, c_min=0.5, seed=0, max_steps=50)
    applications.learn_policy(paid, 0.5, 0.9, seed=0, max_steps=50)
    applications.estimate_rewards(paid, 0.5, seed=0, max_steps=50)
    print(f"compiled kernels ready after {time.perf_counter() - begin:.0f} s")
