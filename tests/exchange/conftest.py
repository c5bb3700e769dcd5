"""Runs of several kinds on disk, which no test changes, with the results that they gave."""

import shutil

import gymnasium
import pytest
from kinds import Episodes, Maze

import gosprl
from gosprl.systems import Outcome


class CutOff(Maze):
    """A maze where episodes are cut off."""

    def reset(self, *, seed=None):
        self.age = 0
        return super().reset(seed=seed)

    def step(self, action):
        observation, reward, terminated, _, info = super().step(action)
        self.age += 1
        return observation, reward - 0.1, terminated, not terminated and self.age >= 7, info


class Fragile(Episodes):
    """Crashes now and then."""

    def step(self, action):
        outcome = super().step(action)
        if self.rng.random() < 0.1:
            return Outcome(gosprl.CRASH, terminated=True)
        return outcome


def river(out):
    mdp = gosprl.envs.make("riverswim6")
    return gosprl.collect(mdp, need=5, seed=0, out=out)


def maze(out):
    return gosprl.collect(CutOff(contexts=2, ends=True), need=3, actions=4, seed=1, out=out)


def lake(out):
    return gosprl.collect(gymnasium.make("FrozenLake-v1"), need=3, seed=2, resets="anytime", out=out)


def fragile(out):
    return gosprl.collect(Fragile(gosprl.envs.make("riverswim6")), need=3, seed=3, out=out)


RUNS = {"river": river, "maze": maze, "lake": lake, "fragile": fragile}


@pytest.fixture(scope="session")
def all_runs(tmp_path_factory):
    """Return the directory and the result of each run."""
    folder = tmp_path_factory.mktemp("runs")
    return {name: (folder / name, make(folder / name)) for name, make in RUNS.items()}


@pytest.fixture(params=RUNS)
def kept(request, all_runs):
    """Each run and its result."""
    return all_runs[request.param]


@pytest.fixture
def river_run(all_runs):
    """Return the directory of a small run."""
    return all_runs["river"][0]


@pytest.fixture
def maze_run(all_runs):
    """Return the directory of a run whose states have names."""
    return all_runs["maze"][0]


@pytest.fixture
def damaged(river_run, tmp_path):
    """Return a copy of a run with one bit flipped in its log."""
    copy = shutil.copytree(river_run, tmp_path / "damaged")
    log = copy / "log" / "000001.arrow"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    return copy
