"""The experiments of the paper, by name."""

from gosprl.experiments.aggregation import AGGREGATION
from gosprl.experiments.costs import COSTS
from gosprl.experiments.diameter import DIAMETER
from gosprl.experiments.dynamics import DYNAMICS
from gosprl.experiments.garnet import GARNET
from gosprl.experiments.modest import MODEST
from gosprl.experiments.states import STATES
from gosprl.experiments.sweep import Experiment
from gosprl.experiments.treasure import MORE, TREASURE
from gosprl.experiments.variants import VARIANTS

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (DYNAMICS, COSTS, TREASURE, MORE, GARNET, MODEST, DIAMETER, STATES, AGGREGATION, VARIANTS)
}
