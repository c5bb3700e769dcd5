"""The algorithms that are compared: options, name, colour and line style, the same in every figure.

The paper's settings for all its experiments are delta = 0.1 and the printed sets times alpha_p = 0.1. The colours are
those of Okabe and Ito, with a darker yellow, which readers with colour vision deficiencies can distinguish. Line styles
differ as well, for print.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PAPER: dict[str, Any] = {"delta": 0.1, "confidence": "bernstein", "scale": 0.1}


@dataclass(frozen=True)
class Algorithm:
    """A strategy, and how it is drawn."""

    label: str
    strategy: str
    options: Mapping[str, Any] = field(default_factory=dict)
    mdp_option: str = ""  # the option that gets the true MDP, if any
    trap_cost: float = 0.0  # cost of a step from the watched state, instead of 1; 0: no costs
    color: str = "#000000"
    line: Any = "-"  # a matplotlib line style


BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE, GREY = "#B8A800", "#0072B2", "#D55E00", "#CC79A7", "#777777"

ALGORITHMS: dict[str, Algorithm] = {
    "gosprl": Algorithm("GOSPRL", "gosprl", PAPER, color=VERMILION),
    "guarded": Algorithm("guarded (our default)", "guarded", color=BLACK),
    "zero-one-ucrl": Algorithm("0/1-UCRL", "zero_one_ucrl", PAPER, color=BLUE, line="--"),
    "zero-one-ucrl-renewed": Algorithm(
        "0/1-UCRL, renewed", "zero_one_ucrl", {**PAPER, "renew": True}, color=YELLOW, line="--"
    ),
    "zero-ucrl": Algorithm("0-UCRL", "zero_ucrl", PAPER, color=SKY, line="-."),
    "maxent": Algorithm("MaxEnt", "maxent", PAPER, color=GREEN, line=":"),
    "weighted-maxent": Algorithm("WeightedMaxEnt", "weighted_maxent", PAPER, color=GREEN, line="--"),
    "min-frequency": Algorithm("MinFrequency", "min_frequency", PAPER, color=PURPLE, line="-."),
    "zero-rmax": Algorithm("Zero-RMax", "zero_rmax", color=ORANGE, line="--"),
    "random": Algorithm("random walk", "random", color=GREY, line=":"),
    "gosprl-known": Algorithm("GOSPRL, p known", "gosprl", {}, mdp_option="dynamics", color=BLUE),
    "gosprl-one-goal": Algorithm(
        "GOSPRL, one random goal", "gosprl", {**PAPER, "goals": "random"}, color=BLUE, line="--"
    ),
    "gosprl-costs": Algorithm("cost-weighted GOSPRL", "gosprl", PAPER, trap_cost=10.0, color=BLUE),
    "gosprl-narrow": Algorithm("GOSPRL, scale 0.0125", "gosprl", {**PAPER, "scale": 0.0125}, color=ORANGE),
    "gosprl-narrow-costs": Algorithm(
        "cost-weighted, scale 0.0125", "gosprl", {**PAPER, "scale": 0.0125}, trap_cost=10.0, color=SKY
    ),
}
