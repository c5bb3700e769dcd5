"""Collect b(s, a) samples of every state-action pair of a system that can only be stepped through.

`collect` walks a system until the need is met; `plan` is the optimistic shortest-path planner underneath; `fluid_limit`
what no collector can beat. Importing this registers the paper's domains as Gymnasium environments too.
"""

from gosprl import applications, envs
from gosprl.collector import Collector, collect
from gosprl.confidence import KL, Bernstein, Confidence, Intervals, Known
from gosprl.errors import CollectionError, GosprlError, InputError, PrecisionError
from gosprl.limits import diameter_bound, exact_optimum, fluid_limit, ssp_diameter_bound
from gosprl.mdp import TabularMDP
from gosprl.model import EmpiricalModel
from gosprl.planner import Plan, plan
from gosprl.requirements import Requirement
from gosprl.result import Result

__version__ = "0.1.0"

__all__ = [
    "KL",
    "Bernstein",
    "CollectionError",
    "Collector",
    "Confidence",
    "EmpiricalModel",
    "GosprlError",
    "InputError",
    "Intervals",
    "Known",
    "Plan",
    "PrecisionError",
    "Requirement",
    "Result",
    "TabularMDP",
    "applications",
    "collect",
    "diameter_bound",
    "envs",
    "exact_optimum",
    "fluid_limit",
    "plan",
    "ssp_diameter_bound",
]
