"""A toy on which the steps of every algorithm must grow with the diameter."""

from typing import TYPE_CHECKING

import gosprl
from gosprl.experiments import claims, growth
from gosprl.experiments.sweep import Case, Experiment, Results, Verdict, fluid_limit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIAMETERS = (5, 10, 20, 40, 80, 160)
TIGHT = 0.5  # a bound is tight if the fluid limit is at least this share of it


def diameter(case: Case) -> float:
    """Return D = 1 / nu, which is exact: every step towards s_1 succeeds with probability nu."""
    return 1 / float(dict(case.parameters)["nu"])


def draw(experiment: Experiment, results: Results) -> "Figure":
    """Draw mean steps against the diameter."""
    x, groups = [diameter(case) for case in experiment.cases], [[case] for case in experiment.cases]
    return growth.draw(experiment, results, x, groups, "diameter $D$")


def judge(experiment: Experiment, results: Results) -> list[Verdict]:
    """Judge the paper's claims about the diameter."""
    linear = claims.proportional(
        *(results, [diameter(case) for case in experiment.cases], [[case] for case in experiment.cases]),
        claim="On the toy, steps grow linearly with the diameter",
        paper="“the sample complexity scales linearly with the diameter”",
    )
    return [linear, _tight(experiment), claims.guarded_beyond(experiment, results)]


def _tight(experiment: Experiment) -> Verdict:
    shares = [
        fluid_limit(case) / gosprl.ssp_diameter_bound(case.mdp(), case.needed(case.mdp())) for case in experiment.cases
    ]
    return claims.verdict(
        min(shares) >= TIGHT,
        claim="On the toy the bound by diameters is tight, whether the dynamics are known or not",
        paper="“simple worst-case problems … where these bounds are tight, i.e., where the sample complexity of GOSPRL "
        "(whether the dynamics are known or not) must directly scale with these diameter quantities”",
        ours=f"fluid limit over Σ b(s) D_s: {min(shares):.2f} to {max(shares):.2f}",
        threshold=f"the fluid limit, a lower bound on expected steps, is at least {TIGHT:g} of Σ b(s) D_s at every D",
        reason="Known dynamics do not help below the fluid limit.",
    )


DIAMETER = Experiment(
    name="fig-diameter",
    title="Growth with the diameter",
    paper="Figure 4",
    text="Ten samples of each of the four pairs of the three-state toy, whose diameter is exactly D = 1/nu.",
    cases=tuple(Case(f"toy3-{D}", f"D = {D}", "toy3", (("nu", 1 / D),)) for D in DIAMETERS),
    algorithms=("gosprl", "guarded", "random"),
    quick=("toy3-5", "toy3-10", "toy3-20"),
    draw=draw,
    judge=judge,
)
