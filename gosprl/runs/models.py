"""The model that a run began with: its states and pairs, and the data that it began with."""

from gosprl.collecting.collect import model_with
from gosprl.collecting.surroundings import Surroundings
from gosprl.mdp.tabular import TabularMDP
from gosprl.model.empirical import EmpiricalModel
from gosprl.runs.declared import check_claims
from gosprl.runs.opened import OpenRun
from gosprl.runs.resuming import table_of
from gosprl.runs.standin import StandIn
from gosprl.systems.base import System
from gosprl.systems.tabular import Tabular


def begun_model(run: OpenRun, table: TabularMDP | None = None) -> EmpiricalModel:
    """Return the model that the last leg of a run would begin with, if it were the first.

    Parameters
    ----------
    run
        The run.
    table
        The table that it walked, where it is known; None: what the run has stored.
    """
    if table is None:
        check_claims(run)
    system: System = StandIn(run.manifest["system"], run.names)
    if run.is_table:
        system = Tabular(table_of(run) if table is None else table)
    return model_with(system, Surroundings(**run.manifest["legs"][-1]["around"]), run.data)
