"""Runs in pieces, each in a system of its own as in another process: nothing is lost, and what can be exact is."""

import errno
import itertools
import json
import os
import warnings
from contextlib import nullcontext

import gymnasium
import numpy as np
import pytest
from kinds import SYSTEMS, Maze, collector_of, river
from runs_on_disk import kept, logged
from test_conformance import bits

import gosprl
from gosprl.collecting import collector as collecting
from gosprl.runs import files
from gosprl.runs.events import RESET
from gosprl.runs.opened import OpenRun

PIECES = (1, 2, 31, 32, 75, 110, 150)
TABLES = ("compiled", "stepped")


@pytest.fixture(autouse=True)
def _often_renewed(monkeypatch):
    monkeypatch.setattr(collecting, "RENEWAL", 40)


def events_of(run):
    """All rows of a log: (state, action, next state, reward, flags)."""
    return [
        row
        for batch in run.contents.batches()
        for row in zip(
            *(batch[name].tolist() for name in ("state", "action", "next_state", "reward", "flags")), strict=True
        )
    ]


@pytest.mark.parametrize("strategy", ["guarded", "zero_rmax"])
def test_pieces(combination, strategy, tmp_path):
    """What is on disk after each piece is the beginning of what is there after the next, and all of it counts."""
    kind, need = combination
    before = []
    for steps in PIECES:
        result = kept(kind, need, strategy, tmp_path / "run", steps=steps)
        run = OpenRun.read(tmp_path / "run")
        events = events_of(run)
        assert events[: len(before)] == before
        assert sum(flags & RESET == 0 for *_, flags in events) == result.steps == result.counts.sum()
        assert sum(flags & RESET > 0 for *_, flags in events) == result.resets + 1
        before = events
    for checkpoints in (True, False):
        system = kind.make()
        collector = collector_of(kind, system, need, strategy)
        run.restore(collector, system, checkpoints=checkpoints)
        collector.conclude()
        assert logged(collector.result()) == logged(result)
    if kind in [SYSTEMS[name] for name in TABLES]:
        assert bits(result) == bits(kept(kind, need, strategy, tmp_path / "whole", steps=PIECES[-1]))


class Restorable(Maze):
    """A maze that tells its state."""

    def get_state(self):
        generator = self.rng.bit_generator.state
        return {"place": list(self.place), "rng": json.dumps(generator)}

    def set_state(self, state):
        self.rng = np.random.default_rng()
        self.rng.bit_generator.state = json.loads(state["rng"])
        self.place = tuple(state["place"])


class InBytes(Restorable):
    """The same, in bytes."""

    def get_state(self):
        return json.dumps(super().get_state()).encode()

    def set_state(self, state):
        super().set_state(json.loads(state))


@pytest.mark.parametrize("maze", [Restorable, InBytes])
@pytest.mark.parametrize("options", [{}, {"resets": "anytime"}, {"horizon": 9}])
def test_a_system_that_tells_its_state_goes_on_exactly(maze, options, tmp_path):
    def collect(steps, **out):
        system = maze(masks=True, contexts=2, ends=True)
        return gosprl.collect(system, 6, actions=4, seed=3, max_steps=steps, **options, **out)

    expected = collect(400)
    for steps in (40, 41, 120, 399, 400):
        result = collect(steps, out=gosprl.runs.Out(tmp_path / "run", sync_steps=7))
    assert bits(result) == bits(expected)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert {entry["how"] for entry in manifest["continued"]} == {"exact"}


def test_other_systems_begin_a_new_trajectory_with_another_seed(tmp_path):
    seeds = []

    class Seeded(Maze):
        def reset(self, *, seed=None):
            if seed is not None:
                seeds.append(seed)
            return super().reset(seed=seed)

    for steps in (50, 100, 150):
        result = gosprl.collect(Seeded(), 20, actions=4, seed=0, max_steps=steps, out=tmp_path / "run")
    assert len(set(seeds)) == 3
    assert result.resets == 2
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert [entry["how"] for entry in manifest["continued"]] == ["new trajectory"] * 2


def test_more_need_and_another_strategy_on_the_same_data(tmp_path):
    mdp = river()
    first = gosprl.collect(mdp, 5, seed=0, out=tmp_path / "run")
    second = gosprl.resume(tmp_path / "run", need=9)
    third = gosprl.resume(tmp_path / "run", need=12, strategy="gosprl", scale=0.1)
    assert first.steps < second.steps < third.steps
    assert np.all(first.counts <= second.counts)
    assert np.all(second.counts <= third.counts)
    assert second.counts.min() >= 9
    assert third.counts.min() >= 12
    assert str(third.guarantee) == "heuristic: scale 0.1"
    again = gosprl.resume(tmp_path / "run")
    assert bits(again) == bits(third)
    run = OpenRun.read(tmp_path / "run")
    assert [leg["first"] for leg in run.manifest["legs"]] == [0, first.steps + 1, second.steps + 1]


def test_a_leg_in_pieces_is_the_leg(tmp_path):
    mdp = gosprl.envs.make("riverswim6")
    for name in ("whole", "pieces"):
        gosprl.collect(mdp, 5, seed=0, out=tmp_path / name)
    whole = gosprl.resume(tmp_path / "whole", need=30)
    for steps in (150, 300, 301, None):
        pieces = gosprl.resume(tmp_path / "pieces", need=30, max_steps=steps)
    assert bits(pieces) == bits(whole)


def test_less_need_is_met_at_once(tmp_path):
    mdp = gosprl.envs.make("riverswim6")
    first = gosprl.collect(mdp, 10, seed=0, out=tmp_path / "run")
    second = gosprl.resume(tmp_path / "run", need=3)
    assert (second.met, second.steps) == (True, first.steps)


def test_functions_have_to_be_given_again(tmp_path):
    def parity(observation, info):
        return observation % 8

    def doors(observation):
        return ["north", "east"] if observation % 2 else ["east", "south", "west"]

    class Ring:
        def reset(self):
            self.at = 0
            return 0, {}

        def step(self, action):
            self.at = (self.at + {"north": 3, "east": 1, "south": 5, "west": 7}[action]) % 24
            return self.at, 0.0, False, False, {}

    given = {"key": parity, "actions": doors}
    gosprl.collect(Ring(), 30, seed=0, max_steps=100, out=tmp_path / "run", **given)
    with pytest.raises(gosprl.InputError, match=r"key: the run was made with function .*parity.*give it again"):
        gosprl.resume(tmp_path / "run", system=Ring())
    result = gosprl.resume(tmp_path / "run", system=Ring(), **given)
    assert result.met
    assert list(result.model.actions) == ["east", "south", "west", "north"]
    expected = gosprl.collect(Ring(), 30, seed=0, **given)
    assert set(result.model.states) == set(expected.model.states)


def test_refusals_name_the_difference(tmp_path):
    mdp = gosprl.envs.make("riverswim6")
    gosprl.collect(mdp, 5, seed=0, out=tmp_path / "run")
    for message, arguments in (
        (r"need \{'of each pair': 5\} there, \{'of each pair': 6\} here", {"need": 6}),
        (r"delta", {"need": 5, "delta": 0.2}),
        (r"strategy .*guarded.*gosprl", {"need": 5, "strategy": "gosprl"}),
        (r"seed 0, got 1", {"need": 5, "seed": 1}),
        (r"threshold None there, 0.5 here", {"need": 5, "threshold": 0.5}),
    ):
        with pytest.raises(gosprl.InputError, match=message):
            gosprl.collect(mdp, out=tmp_path / "run", **arguments)
    with pytest.raises(gosprl.InputError, match="another system"):
        gosprl.collect(gosprl.envs.make("riverswim36"), 5, out=tmp_path / "run")
    with pytest.raises(gosprl.InputError, match="another system"):
        gosprl.collect(gymnasium.make("FrozenLake-v1"), 5, out=tmp_path / "run")


def test_what_is_no_run_is_refused(tmp_path):
    mdp = gosprl.envs.make("riverswim6")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("mine", "file"):
        with pytest.raises(gosprl.InputError, match="out: expected a new directory or a run"):
            gosprl.collect(mdp, 5, out=tmp_path / name)
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "mine", "thesis.tex"]
    with pytest.raises(gosprl.InputError, match="run: expected the directory of a run"):
        gosprl.resume(tmp_path / "nowhere")
    with pytest.raises(gosprl.InputError, match="need"):
        gosprl.collect(mdp, -5, out=tmp_path / "never begun")
    assert not (tmp_path / "never begun").exists()


def test_an_observation_that_cannot_be_stored_is_refused_before_the_first_step(tmp_path):
    from enum import Enum

    class Light(Enum):
        RED = 1

    class Traffic:
        def reset(self):
            return Light.RED, {}

        def step(self, action):
            return Light.RED, 0.0, False, False, {}

    with pytest.raises(gosprl.InputError, match=r"out: an observation of type Light cannot be stored.*give key="):
        gosprl.collect(Traffic(), 2, actions=1, out=tmp_path / "run")
    result = gosprl.collect(
        Traffic(), 2, actions=1, key=lambda light, info: light.name, out=tmp_path / "run", unseen=0.9
    )
    assert result.met


def test_another_version_keeps_all_samples_and_plans_anew(tmp_path, monkeypatch):
    """As after an update that plans otherwise: the log cannot be followed, but it is all there."""
    mdp = gosprl.envs.make("riverswim6")
    before = gosprl.collect(mdp, 20, strategy="gosprl", seed=0, max_steps=200, out=tmp_path / "run")
    planner = gosprl.strategies.gosprl.GosprlPlanner
    before_update = planner._largest_gap

    def other_ties(planner, s):
        planner.rng.random()
        return before_update(planner, s)

    monkeypatch.setattr(planner, "_largest_gap", other_ties)
    with pytest.warns(UserWarning, match="cannot be followed exactly"):
        after = gosprl.resume(tmp_path / "run")
    assert after.met
    assert np.all(after.counts >= before.counts)
    legs = OpenRun.read(tmp_path / "run").manifest["legs"]
    assert len(legs) == 2
    assert "the simulation has" in legs[1]["because"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bits(gosprl.resume(tmp_path / "run")) == bits(after)


def test_needs_come_back(tmp_path):
    """A need by observation, by state, by pair: the run goes on without being told again."""
    mdp = gosprl.envs.make("riverswim6")
    needs = {"states": np.arange(6), "pairs": np.arange(12).reshape(6, 2), "of": {2: 7, 3: {1: 9}}}
    for name, need in needs.items():
        expected = gosprl.collect(mdp, need, seed=0)
        gosprl.collect(mdp, need, seed=0, max_steps=10, out=tmp_path / name)
        assert bits(gosprl.resume(tmp_path / name)) == bits(expected)
    by_room = {"room (0, 1, 0)": 6, "room (0, 1, 1)": {0: 4, 3: 2}}
    gosprl.collect(Maze(), by_room, actions=4, seed=0, max_steps=10, out=tmp_path / "rooms")
    result = gosprl.resume(tmp_path / "rooms", system=Maze())
    assert result.met
    assert result.states == 2


def test_what_cannot_be_stored_must_be_given_again(tmp_path):
    mdp = gosprl.envs.make("riverswim6")
    gosprl.collect(mdp, lambda model: np.full(6, 7), seed=0, max_steps=10, out=tmp_path / "run")
    with pytest.raises(gosprl.InputError, match="need: the run was made with an object of type Computed"):
        gosprl.resume(tmp_path / "run")
    assert gosprl.resume(tmp_path / "run", need=lambda model: np.full(6, 7)).met


def test_applications_go_on(tmp_path):
    mdp = river()
    runs = {
        "estimate_model": {"eta": 0.4},
        "find_treasure": {"threshold": 0.99},
        "estimate_diameter": {"epsilon": 1.0},
        "learn_policy": {"gamma": 0.5, "epsilon": 1.0},
        "explore_all_goals": {"epsilon": 3.0, "c_min": 0.5},
        "best_state": {"epsilon": 0.3},
        "estimate_rewards": {"epsilon": 0.3},
    }
    for name, options in runs.items():
        application = getattr(gosprl.applications, name)
        expected = application(mdp, seed=2, **options)
        cut = max(1, expected.steps // 2)
        application(mdp, seed=2, max_steps=cut, out=tmp_path / name, **options)
        answer = gosprl.resume(tmp_path / name)
        assert type(answer) is type(expected)
        assert bits(answer.collected) == bits(expected.collected)
        assert str(answer) == str(expected)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("estimate_model", {"eta": 0.3}),
        ("estimate_model", {"eta": 0.5, "rule": "decreasing"}),
        ("estimate_diameter", {"epsilon": 1.0}),
        ("estimate_diameter", {"epsilon": 1.0, "rule": "certified"}),
        ("learn_policy", {"gamma": 0.5, "epsilon": 0.7}),
        ("explore_all_goals", {"epsilon": 3.0, "c_min": 0.5}),
        ("best_state", {"epsilon": 0.2}),
        ("best_state", {"budget": 300}),
        ("estimate_rewards", {"epsilon": 0.2}),
    ],
)
def test_applications_go_on_from_checkpoints(name, options, tmp_path):
    mdp = river()
    application = getattr(gosprl.applications, name)
    expected = application(mdp, seed=2, max_steps=2000, **options)
    for part in (0.3, 0.31, 0.7, 0.9):
        application(mdp, seed=2, max_steps=max(1, int(part * expected.steps)), out=tmp_path / "run", **options)
    assert list((tmp_path / "run" / "checkpoint").glob("0*.json"))
    answer = application(mdp, seed=2, max_steps=2000, out=tmp_path / "run", **options)
    assert bits(answer.collected) == bits(expected.collected)
    assert str(answer) == str(expected)
    assert len(OpenRun.read(tmp_path / "run").manifest["legs"]) == 1


def test_names_whose_events_were_never_acknowledged_are_forgotten(tmp_path):
    """The chain was torn between the line of the names and that of the rows of the same sync."""
    out, maze = tmp_path / "run", {"masks": True, "contexts": 2, "ends": True}
    for steps in (10, 20, 30, 40, 50, 60):
        gosprl.collect(Maze(**maze), 3, actions=4, seed=0, max_steps=steps, out=out)
    chain, rows = tmp_path / "run" / "log" / "chain", OpenRun.read(tmp_path / "run").contents.rows
    lines = chain.read_text().splitlines(keepends=True)
    last = max(i for i, line in enumerate(lines) if "states.arrow" in line)
    assert last > 0
    chain.write_text("".join(lines[: last + 1]))
    (tmp_path / "run" / "certificate.json").unlink()
    before = OpenRun.read(tmp_path / "run").contents.rows
    assert 0 < before < rows  # how many depends on when the writing thread is scheduled
    result = gosprl.collect(Maze(**maze), 3, actions=4, seed=0, max_steps=400, out=out)
    assert result.steps > before
    assert gosprl.runs.verify(tmp_path / "run").ok


NO_SPACE = "cannot be written: .*No space left|could not be written: .*No space left on device; the first"
ENOUGH = 10**6


@pytest.mark.parametrize("calls", [0, 1, 2, 3, 4, ENOUGH])
def test_no_space_stops_the_run_and_loses_nothing_that_was_saved(calls, tmp_path, monkeypatch):
    mdp = gosprl.envs.make("riverswim6")
    expected = gosprl.collect(mdp, 200, seed=0)
    made = itertools.count()
    write = files.disk.write

    def full(fd, data):
        if next(made) >= calls:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data)

    out = gosprl.runs.Out(tmp_path / "run", sync_steps=100)
    with monkeypatch.context() as patched:
        patched.setattr(files.disk, "write", full)
        expectation = nullcontext() if calls == ENOUGH else pytest.raises(gosprl.GosprlError, match=NO_SPACE)
        with expectation as failed:
            gosprl.collect(mdp, 200, seed=0, out=out)
    if failed is not None and calls:  # else it was before the first step
        assert failed.value.result.steps > 0
    assert bits(gosprl.collect(mdp, 200, seed=0, out=out)) == bits(expected)
