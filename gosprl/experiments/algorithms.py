"""The algorithms that are compared: options, name, colour and line style, the same in every figure.

The paper's settings for all its experiments are delta = 0.1 and the printed sets times alpha_p = 0.1. Every experiment
is made at two widths of these sets. STATED multiplies the whole radius by 0.1, which is what the paper says. FITTED
multiplies the square root by 0.1 and the linear term by 0.01, as if the logarithm were multiplied by 0.01. It was
fitted to Table 2 of the paper, whose numbers STATED does not give; why it fits is not known.

An algorithm with sets has a name at each width (`at`); others have one for both.

The colours are those of Okabe and Ito, with a darker yellow, which readers with colour vision deficiencies can
distinguish. Line styles differ as well, for print.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

PAPER: dict[str, Any] = {"delta": 0.1, "confidence": "bernstein", "scale": 0.1}


@dataclass(frozen=True)
class Width:
    """A reading of the width of the paper's sets."""

    name: str
    title: str  # on the page and above figures
    short: str  # in tables
    options: Mapping[str, Any] = field(default_factory=dict)  # in addition to PAPER
    suffix: str = ""  # of the names of algorithms and figures


STATED = Width("stated", "radius x 0.1, as the paper states", "x 0.1")
FITTED = Width(
    "fitted",
    "fitted to Table 2: square root x 0.1, linear term x 0.01",
    "fitted to Table 2",
    {"linear_scale": 0.01},
    "-fitted",
)
WIDTHS = (STATED, FITTED)


@dataclass(frozen=True)
class Algorithm:
    """A strategy, and how it is drawn."""

    label: str
    strategy: str
    options: Mapping[str, Any] = field(default_factory=dict)
    mdp_option: str = ""  # the option that gets the true MDP, if any
    trap_cost: float = 0.0  # cost of a step from the watched state, instead of 1; 0: no costs
    visit_costs: str = ""  # "square" or "kl": visit-driven costs; "": none
    color: str = "#000000"
    line: Any = "-"  # a matplotlib line style


BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE, GREY = "#B8A800", "#0072B2", "#D55E00", "#CC79A7", "#777777"
UCRL2 = {**PAPER, "precision_power": 0.5}  # plans as precise as in UCRL2, from which the rivals are made
COARSE = {**UCRL2, "mu": 1.0, "drift": 0.5}  # the other end of the grid of evidence/rivals.py


def _gosprl(label: str, color: str, line: Any = "-", visit_costs: str = "", **options: Any) -> Algorithm:
    return Algorithm(label, "gosprl", {**PAPER, **options}, visit_costs=visit_costs, color=color, line=line)


_AT_ONE_WIDTH: dict[str, Algorithm] = {
    "gosprl": _gosprl("GOSPRL", VERMILION),
    "guarded": Algorithm("guarded (our default)", "guarded", color=BLACK),
    "zero-one-ucrl": Algorithm("0/1-UCRL", "zero_one_ucrl", PAPER, color=BLUE, line="--"),
    "zero-one-ucrl-renewed": Algorithm(
        "0/1-UCRL, renewed", "zero_one_ucrl", {**PAPER, "renew": True}, color=YELLOW, line="--"
    ),
    "zero-one-ucrl-source": Algorithm("0/1-UCRL, precision of UCRL2", "zero_one_ucrl", UCRL2, color=BLUE, line=":"),
    "zero-ucrl": Algorithm("0-UCRL", "zero_ucrl", PAPER, color=SKY, line="-."),
    "zero-ucrl-source": Algorithm("0-UCRL, precision of UCRL2", "zero_ucrl", UCRL2, color=SKY, line=":"),
    "maxent": Algorithm("MaxEnt", "maxent", PAPER, color=GREEN, line=":"),
    "maxent-source": Algorithm("MaxEnt, precision of UCRL2", "maxent", UCRL2, color=GREEN, line="--"),
    "maxent-coarse": Algorithm("MaxEnt, precision of UCRL2, mu = 1, Q = 0.5", "maxent", COARSE, color=GREEN, line="-."),
    "weighted-maxent": Algorithm("WeightedMaxEnt", "weighted_maxent", PAPER, color=GREEN, line="--"),
    "weighted-maxent-source": Algorithm(
        "WeightedMaxEnt, precision of UCRL2", "weighted_maxent", UCRL2, color=SKY, line=":"
    ),
    "min-frequency": Algorithm("MinFrequency", "min_frequency", PAPER, color=PURPLE, line="-."),
    "zero-rmax": Algorithm("Zero-RMax", "zero_rmax", color=ORANGE, line="--"),
    "random": Algorithm("random walk", "random", color=GREY, line=":"),
    "gosprl-known": Algorithm("GOSPRL, p known", "gosprl", {}, mdp_option="dynamics", color=BLUE),
    "gosprl-one-goal": _gosprl("GOSPRL, one random goal", BLUE, "--", goals="random"),
    "gosprl-no-phase": _gosprl("no initial phase", BLACK, goals="all-always"),
    "gosprl-least": _gosprl("goal: least sampled", GREEN, goals="least-sampled"),
    "gosprl-easiest": _gosprl("goal: easiest", SKY, goals="easiest"),
    "gosprl-square": _gosprl("visit costs: square", ORANGE, visit_costs="square"),
    "gosprl-kl": _gosprl("visit costs: kl", PURPLE, visit_costs="kl"),
    "gosprl-costs": Algorithm("cost-weighted GOSPRL", "gosprl", PAPER, trap_cost=10.0, color=BLUE),
}


def _fitted(algorithm: Algorithm) -> Algorithm:
    return replace(algorithm, options={**algorithm.options, **FITTED.options})


ALGORITHMS: dict[str, Algorithm] = _AT_ONE_WIDTH | {
    name + FITTED.suffix: _fitted(each) for name, each in _AT_ONE_WIDTH.items() if "scale" in each.options
}


def at(name: str, width: Width) -> str:
    """Return the name of an algorithm at a width; without sets, it is the same at all widths."""
    there = name + width.suffix
    return there if there in ALGORITHMS else name
