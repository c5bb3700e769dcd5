"""Applications: one function for each objective of the paper, each with its guarantee.

    find_treasure      a reward hidden at one pair
    estimate_model     the dynamics of every pair, to within eta (MODEST, RMODEST)
    estimate_diameter  the diameter, within a factor
    explore_all_goals  near-optimal policies for any goal and any costs, without another step
    learn_policy       a near-optimal policy for discounted rewards
    best_state         the state with the largest mean reward
    estimate_rewards   the mean reward of every pair

All take a `TabularMDP`, a Gymnasium environment or a `gosprl.systems.System`, and `delta`, `confidence`, `seed`,
`max_steps`, `progress`, `strategy` and its options as `gosprl.collect` does. All return an `Answer` with `steps`,
`stop`, `guarantee` (a `gosprl.Guarantee`) and `collected` (the `Result` of the collection), which prints as aligned
lines. The answer of a run that stopped early states what was proved by then.
"""

from gosprl.applications.best import BestState, best_state
from gosprl.applications.common import Answer
from gosprl.applications.diameter import DiameterEstimate, estimate_diameter
from gosprl.applications.goal_free import Explored, explore_all_goals
from gosprl.applications.modest import ModelEstimate, estimate_model
from gosprl.applications.policy import LearntPolicy, learn_policy
from gosprl.applications.rewards import RewardEstimate, estimate_rewards
from gosprl.applications.treasure import Treasure, find_treasure

__all__ = [
    "Answer",
    "BestState",
    "DiameterEstimate",
    "Explored",
    "LearntPolicy",
    "ModelEstimate",
    "RewardEstimate",
    "Treasure",
    "best_state",
    "estimate_diameter",
    "estimate_model",
    "estimate_rewards",
    "explore_all_goals",
    "find_treasure",
    "learn_policy",
]
