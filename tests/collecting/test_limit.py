"""The limit of a run: against plain linear programs, never above what the run took, and none where it says nothing."""

import json

import gymnasium
import numpy as np
import pytest
from fleet_runs import walked
from gymnasium.wrappers import TimeLimit
from pages import page_of
from scipy.optimize import linprog
from typer.testing import CliRunner
from walked import table_collector

import gosprl
from gosprl import Collector, TabularMDP
from gosprl.cli.app import app
from gosprl.envs import make
from gosprl.report.from_run import of_run

RIVER = make("riverswim6")
GREW = "none: what was needed depends on what was seen"
ROUNDING = 1 + 1e-6  # the precision of the program's solution


def ring(cells, leave=1.0):
    """On to the next cell, surely or with probability `leave`; it never ends, and there is no other way."""
    s = np.arange(cells)
    parts = np.append(s, s), np.zeros(2 * cells, dtype=int), np.append((s + 1) % cells, s)
    return TabularMDP((*parts, np.append(np.full(cells, leave), np.full(cells, 1 - leave))), states=cells, actions=1)


class Ring(gymnasium.Env):
    """The ring without chance, as an environment."""

    action_space = gymnasium.spaces.Discrete(1)

    def __init__(self, cells):
        self.observation_space = gymnasium.spaces.Discrete(cells)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return 0, {}

    def step(self, action):
        self.at = (self.at + 1) % self.observation_space.n
        return self.at, 0.0, False, False, {}


def fewest(leaving, least, cost, begun):
    """The fluid program, plainly: min cost x for rows (state, law of the next one [S]), of which `begun` [S] begin."""
    S = len(begun)
    flow = np.array([np.eye(S)[s] - law for s, law in leaving]).T
    plain = linprog(
        np.append(cost, np.zeros(S)),
        A_eq=np.hstack([flow, np.eye(S)]),
        b_eq=begun,
        bounds=[(low, None) for low in least] + [(0, None)] * S,
    )
    assert plain.success
    return plain.fun


def of_lake(env, need, reset_cost):
    """The same for the true dynamics of a lake that can be reset at will; all endings lead to one more state."""
    true, S = env.unwrapped.P, env.observation_space.n
    alive = [s for s in true if any(s_next != s for a in true[s] for _, s_next, _, _ in true[s][a])]
    ways = []
    for s in alive:
        for a in range(4):
            law = np.zeros(S + 1)
            for p, s_next, _, ended in true[s][a]:
                law[S if ended else s_next] += p
            ways.append((s, law))
    resets = [(s, np.eye(S + 1)[S]) for s in alive]
    every = [*ways, *resets, (S, np.eye(S + 1)[0])]
    least = [need] * len(ways) + [0] * (len(resets) + 1)
    cost = [1.0] * len(ways) + [reset_cost] * len(resets) + [0.0]
    return fewest(every, least, cost, np.eye(S + 1)[0])


# Resets


@pytest.mark.parametrize("resets", ["terminal", "anytime"])
def test_resets_at_will_do_not_make_the_limit_smaller_than_it_is(resets):
    """200 samples of every pair: a reset that was never chosen leads to the start, as all of them do.

    The limit of what was learnt is as precise as the frequencies. Over seeds 0 to 9, it was within 3 % of the truth.
    """
    env = gymnasium.make("FrozenLake-v1")
    result = gosprl.collect(env, 200, seed=0, resets=resets)
    assert result.met
    assert result.limit == pytest.approx(of_lake(env, 200, 1.0), rel=0.1)
    assert result.limit <= result.paid * ROUNDING
    assert result.ratio == pytest.approx((result.steps + result.quits) / result.limit)


def test_chosen_resets_cost_what_they_cost():
    """30 samples of the first cell of a ring take 30 steps and 29 resets at least. A reset costs half a step."""
    env = Ring(10)
    result = gosprl.collect(env, {0: 30}, seed=0, resets="anytime", reset_cost=0.5)
    assert result.resets == result.quits >= 29
    assert result.paid == result.steps + result.quits * 0.5
    assert result.limit == pytest.approx(30 + 29 * 0.5)
    assert result.ratio == pytest.approx(result.paid / (30 + 29 * 0.5))


# Walks that begin more than once


def by_jumps():
    """Ask and tell, where the user begins in cell 0 again and again."""
    collector, s = Collector(20, 1, np.eye(20, dtype=int)[:, :1] * 10, seed=0), 0
    while not collector.done:
        assert collector.ask(s) == 0
        collector.tell(s, 0, s + 1)
        s = 0 if s == 2 else s + 1
    return collector.result()


def by_two():
    """Ask and tell with two walkers, both of which begin in cell 0."""
    collector, at = Collector(20, 1, np.eye(20, dtype=int)[:, :1] * 2, seed=0), {"a": 0, "b": 0}
    while not collector.done:
        for walker, s in at.items():
            if not collector.done and collector.ask(s, walker=walker) == 0:
                collector.tell(s, 0, (s + 1) % 20, walker=walker)
                at[walker] = (s + 1) % 20
    return collector.result()


def by_fleet(walkers=10):
    collector, _ = walked(ring(20), np.eye(20, dtype=int)[:, :1] * 10, walkers)
    return collector.result()


AGAIN = {
    "cut off": lambda: gosprl.collect(TimeLimit(Ring(20), 5), {0: 10}, seed=0),
    "horizon": lambda: gosprl.collect(Ring(20), {0: 10}, seed=0, resets="terminal", horizon=5),
    "jumps": by_jumps,
    "two walkers": by_two,
    "fleet": by_fleet,
}


@pytest.mark.parametrize("again", AGAIN)
def test_what_begins_again_does_not_walk_back(again):
    """Round the ring it would take 20 steps for each sample of cell 0; these walks come there without a step."""
    result = AGAIN[again]()
    assert result.met
    assert 0 < result.limit <= result.paid * ROUNDING
    assert result.ratio == pytest.approx(result.paid / result.limit)


LEARNT = {
    "lake": lambda: gosprl.collect(gymnasium.make("FrozenLake-v1"), 3, seed=0),
    "lake, at will": lambda: gosprl.collect(gymnasium.make("FrozenLake-v1"), 3, seed=0, resets="anytime"),
    "lake, cut off": lambda: gosprl.collect(gymnasium.make("FrozenLake-v1", max_episode_steps=7), 3, seed=0),
    "lake, fleet": lambda: gosprl.collect("FrozenLake-v1", 3, seed=0, workers="threads:2"),
    "cliff": lambda: gosprl.collect(gymnasium.make("CliffWalking-v1"), 1, seed=0, horizon=30),
}


@pytest.mark.parametrize("system", LEARNT)
def test_no_run_takes_less_than_the_limit_of_what_it_learnt(system):
    """The visits of a run satisfy the program of its own frequencies."""
    result = LEARNT[system]()
    assert result.met
    assert result.limit_of == "the learnt model, an estimate"
    assert 0 < result.limit <= result.paid * ROUNDING


# The same system, in other ways


def test_a_system_without_chance_has_one_limit_whoever_walks_it(tmp_path):
    """As a table, as an environment, by ask and tell, in two pieces; and what was in the data is not needed."""
    mdp, cells = ring(12), np.arange(12)
    expected = fewest([(s, np.eye(12)[(s + 1) % 12]) for s in cells], [6] * 12, np.ones(12), np.eye(12)[0])
    assert expected == 72
    collector, s = table_collector(12, 1, 6, seed=0), 0
    while not collector.done:
        collector.tell(s, collector.ask(s), (s + 1) % 12)
        s = (s + 1) % 12
    gosprl.collect(mdp, 6, seed=0, max_steps=20, out=tmp_path)
    results = {
        "table": gosprl.collect(mdp, 6, seed=0),
        "environment": gosprl.collect(Ring(12), 6, seed=0, resets="never"),
        "environment that could end": gosprl.collect(Ring(12), 6, seed=0),
        "ask and tell": collector.result(),
        "in two pieces": gosprl.resume(tmp_path),
    }
    assert all(result.met for result in results.values())
    assert {name: result.limit for name, result in results.items()} == pytest.approx(dict.fromkeys(results, expected))
    more = gosprl.collect(mdp, 10, seed=1, data=results["table"], data_order="collected")
    assert more.met
    assert more.limit == pytest.approx(48)


def test_the_limit_is_below_the_steps_in_the_mean():
    """Of the true dynamics. 40 runs; the mean may be below by chance: by 3.3 standard errors in 1 of 2000 cases."""
    mdp = ring(8, leave=0.3)
    ratios = np.array([gosprl.collect(mdp, 4, seed=seed).ratio for seed in range(40)])
    assert ratios.mean() >= 1 - 3.3 * ratios.std(ddof=1) / 40**0.5


# None


class Enough(gosprl.Requirement):
    """Twice the samples of the first pair, of every pair."""

    def __init__(self):
        self.pair, self.state = np.ones(12, dtype=np.int64), np.zeros(6, dtype=np.int64)

    def update(self, model, rows):
        self.pair[1:] = np.minimum(2 * model.visits[0], 6)


GROWING = {
    "unseen": lambda **options: gosprl.collect(RIVER, 1, seed=0, unseen=0.8, **options),
    "function": lambda **options: gosprl.collect(
        RIVER, lambda model: np.minimum(model.visits.reshape(6, 2) + 1, 4), seed=0, **options
    ),
    "own": lambda **options: gosprl.collect(RIVER, Enough(), seed=0, **options),
    "application": lambda **options: gosprl.applications.estimate_model(RIVER, 0.9, seed=0, **options).collected,
    "application with unseen": lambda **options: gosprl.collect(
        gymnasium.make("FrozenLake-v1", is_slippery=False), 1, seed=0, unseen=0.8, **options
    ),
}


@pytest.mark.parametrize("growing", GROWING)
def test_needs_that_grow_with_the_walk_have_no_limit(growing, tmp_path):
    result = GROWING[growing](out=tmp_path / "run")
    assert result.met
    assert (result.limit, result.ratio, result.limit_of) == (None, None, GREW)
    assert f"limit      {GREW}" in repr(result)
    assert GREW in result._repr_html_()
    result.plot().savefig(tmp_path / "plot.png")
    assert GREW in page_of(result).text
    for page in (page_of(result).text, page_of(tmp_path / "run").text):
        assert "times the limit" not in page
    assert of_run(tmp_path / "run").limit == (None, GREW)


def test_the_command_line_and_comparisons_have_none_either(tmp_path):
    command = ["collect", "riverswim6", "--need", "1", "--unseen", "0.8", "--seed", "0"]
    told = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert (told["limit"], told["limit_of"]) == (None, GREW)
    assert GREW in CliRunner().invoke(app, command).stdout
    found = gosprl.compare(RIVER, ["guarded"], need=1, runs=2, workers=1, unseen=0.8)
    assert np.isnan(found.limit)
    assert "limit " not in found.title
    found.write(tmp_path / "compared.png")
    with_limit = gosprl.compare(RIVER, ["guarded"], need=1, runs=2, workers=1)
    assert with_limit.limit == gosprl.fluid_limit(RIVER, 1)
