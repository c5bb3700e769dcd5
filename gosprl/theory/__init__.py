"""The paper's theory as code: its bounds as numbers, for small MDPs.

lower_bound_...            lower bounds on the steps to collect samples, on the families of `gosprl.envs.lower_bounds`
induced_chain              a stationary policy as an ergodic chain: stationary law and spectral gap
visits_at_least            lower bounds on the chain's visits of each state after t steps
steps_until_met            the number of steps after which the chain meets a need
Orders                     the paper's upper bounds on one MDP, with all constants and logarithms set to one
finite_horizon_example     an MDP in which a state that cannot be reached within H steps still matters
reach_within               the largest probability to reach a state within H steps
bayes_price                the steps that not knowing the dynamics costs any collector, on average over candidates
minimax_price              the same for the candidate that is worst for the collector (`gosprl.theory.price`)
fluid_limit                a lower bound on the expected steps of any collector (`gosprl.theory.limits`)
"""

from gosprl.theory.ergodicity import Chain, induced_chain, steps_until_met, visit_radius, visits_at_least
from gosprl.theory.finite_horizon import finite_horizon_example, reach_within
from gosprl.theory.limits import diameter_bound, exact_optimum, fluid_limit, ssp_diameter_bound
from gosprl.theory.lower_bounds import (
    lower_bound_epsilon_wheel,
    lower_bound_hard_to_learn,
    lower_bound_one_state_modification,
    lower_bound_two_state_chain,
)
from gosprl.theory.orders import Orders
from gosprl.theory.price import BayesPrice, MinimaxPrice, bayes_price, minimax_price

__all__ = [
    "BayesPrice",
    "Chain",
    "MinimaxPrice",
    "Orders",
    "bayes_price",
    "diameter_bound",
    "exact_optimum",
    "finite_horizon_example",
    "fluid_limit",
    "induced_chain",
    "lower_bound_epsilon_wheel",
    "lower_bound_hard_to_learn",
    "lower_bound_one_state_modification",
    "lower_bound_two_state_chain",
    "minimax_price",
    "reach_within",
    "ssp_diameter_bound",
    "steps_until_met",
    "visit_radius",
    "visits_at_least",
]
