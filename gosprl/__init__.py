"""Collect b(s, a) samples of every state-action pair of a system that can only be stepped through.

`collect` walks a system until the need is met; `plan` is the optimistic shortest-path planner underneath; `fluid_limit`
is a lower bound on the expected steps of any collector. Importing this registers the paper's domains as Gymnasium
environments, too.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gosprl import applications, envs, runs
from gosprl.collecting.asktell import RESET, WAIT
from gosprl.collecting.collect import collect
from gosprl.collecting.collector import Collector
from gosprl.collecting.requirements import Requirement
from gosprl.collecting.result import Result
from gosprl.errors import CollectionError, GosprlError, InputError, PrecisionError
from gosprl.guarantee import Guarantee
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.model.states import CRASH
from gosprl.planning.ssp import Plan, plan
from gosprl.probing import Probe, probe
from gosprl.sets.bernstein import Bernstein
from gosprl.sets.intervals import Confidence, Intervals
from gosprl.sets.kl import KL
from gosprl.sets.known import Known
from gosprl.theory.limits import diameter_bound, exact_optimum, fluid_limit, ssp_diameter_bound

if TYPE_CHECKING:
    from gosprl.comparing import compare
    from gosprl.runs.resuming import resume

__version__ = "0.2.0.dev0"

__all__ = [
    "CRASH",
    "KL",
    "RESET",
    "WAIT",
    "Bernstein",
    "CollectionError",
    "Collector",
    "Confidence",
    "EmpiricalModel",
    "GosprlError",
    "Guarantee",
    "InputError",
    "Intervals",
    "Known",
    "Plan",
    "PrecisionError",
    "Probe",
    "Requirement",
    "Result",
    "TabularMDP",
    "applications",
    "collect",
    "compare",
    "diameter_bound",
    "envs",
    "exact_optimum",
    "fluid_limit",
    "plan",
    "probe",
    "resume",
    "runs",
    "ssp_diameter_bound",
]


_LATER = ("comparing", "exchange", "experiments", "report", "watching")


def __getattr__(name: str) -> Any:
    """Import what is asked for: `resume`, `compare` and these packages need Arrow, or what not everybody installs."""
    if name in _LATER:
        return import_module(f"gosprl.{name}")
    if name == "resume":
        return runs.resume
    if name == "compare":
        from gosprl.comparing import compare

        return compare
    raise AttributeError(f"module 'gosprl' has no attribute {name!r}")
