"""Collect b(s, a) samples of every state-action pair of a system that can only be stepped through.

So far: sparse MDPs and the paper's domains, empirical models, confidence sets, the optimistic shortest-path planner,
and the limits that no collector can beat. Importing this registers the domains as Gymnasium environments too.
"""

from gosprl import envs
from gosprl.confidence import KL, Bernstein, Confidence, Intervals, Known
from gosprl.errors import GosprlError, InputError, PrecisionError
from gosprl.limits import diameter_bound, exact_optimum, fluid_limit, ssp_diameter_bound
from gosprl.mdp import TabularMDP
from gosprl.model import EmpiricalModel
from gosprl.planner import Plan, plan

__version__ = "0.1.0"

__all__ = [
    "KL",
    "Bernstein",
    "Confidence",
    "EmpiricalModel",
    "GosprlError",
    "InputError",
    "Intervals",
    "Known",
    "Plan",
    "PrecisionError",
    "TabularMDP",
    "diameter_bound",
    "envs",
    "exact_optimum",
    "fluid_limit",
    "plan",
    "ssp_diameter_bound",
]
