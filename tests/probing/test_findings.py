"""What a walk shows, on systems whose answer is known by hand or by brute force."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import gosprl
from gosprl.model.empirical import EmpiricalModel
from gosprl.probing import findings


class Scripted(gymnasium.Env):
    """A ring of 4; `limit` truncates, `end` (a cell) terminates, starts are drawn from `starts`; rewards by `pay`."""

    observation_space = gymnasium.spaces.Discrete(4)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, limit=None, end=None, starts=(0,), pay=lambda rng, s, a: 0.0):
        self.limit, self.end, self.starts, self.pay = limit, end, starts, pay

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.age = int(self.np_random.choice(self.starts)), 0
        return self.at, {}

    def step(self, action):
        reward = self.pay(self.np_random, self.at, action)
        self.at, self.age = (self.at + (1 if action else -1)) % 4, self.age + 1
        return self.at, reward, self.at == self.end, self.age == self.limit, {}


def test_a_time_limit():
    endings = gosprl.probe(Scripted(limit=7), seed=0).endings
    assert (endings.time_limit, endings.terminated, endings.steps_to_termination) == (7, 0, None)
    assert endings.truncated == endings.resets - 1 > 10
    assert endings.starts == 1


def test_terminations_and_starts():
    found = gosprl.probe(Scripted(end=3, starts=(0, 1, 2)), seed=0)
    assert found.endings.time_limit is None
    assert found.endings.truncated == 0
    assert found.endings.steps_to_termination.least == 1
    assert found.endings.starts == 3
    assert found.classes.communicating


def test_no_endings():
    found = gosprl.probe(Scripted(), seed=0)
    assert (found.endings.terminated, found.endings.truncated, found.endings.resets) == (0, 0, 1)
    assert "no episode ended" in repr(found)


def test_rewards():
    found = gosprl.probe(Scripted(pay=lambda rng, s, a: float(s) - 1), seed=0).rewards
    assert (found.range.least, found.range.most, found.deterministic, found.pairs) == (-1, 2, 8, 8)
    noisy = gosprl.probe(Scripted(pay=lambda rng, s, a: float(rng.random() < 0.5) if s else 0.5), seed=0).rewards
    assert (noisy.deterministic, noisy.pairs) == (2, 8)  # each of the others pays the same 10 times with 2^-9


def test_deterministic_rows():
    found = gosprl.probe(Scripted(), seed=0)
    assert (found.outcomes.pairs, found.outcomes.deterministic) == (8, 8)
    assert found.outcomes.next_states == findings.Spread(1, 1, 1)
    least = min(found.size.states, 100)
    assert least == 4
    visits = found.steps // 8
    assert 1 / visits < found.outcomes.bound < 60 / visits  # log(1 / delta) / n, times a union over pairs and times


def test_the_bound_holds_for_rare_outcomes():
    """Of 100 models, the bound is below the truth in a part delta at most; 25 would have probability below 1e-5."""
    rng, wrong, truth = np.random.default_rng(0), 0, 0.03
    for _ in range(100):
        model = EmpiricalModel(2, 1)
        n = int(rng.integers(2, 150))
        model.update([0] * n, [0] * n, (rng.random(n) < truth).astype(int))
        found = findings.outcomes(model, 0.1)
        wrong += found.deterministic == 1 and found.bound < truth
    assert wrong <= 25


def closure(edges, n):
    """Which states lead to which, by brute force."""
    reach = np.eye(n, dtype=bool)
    for s, t in edges:
        reach[s, t] = True
    for k, i, j in itertools.product(range(n), repeat=3):
        reach[i, j] |= reach[i, k] and reach[k, j]
    return reach


@pytest.mark.parametrize("seed", range(8))
def test_classes_against_brute_force(seed):
    rng = np.random.default_rng(seed)
    n = 7
    edges = [(s, int(t)) for s in range(n) for t in rng.integers(n, size=int(rng.integers(1, 3)))]
    model = EmpiricalModel(n, 1)
    for s, t in edges:
        model.update(s, 0, t)
    for s in range(n):
        model.discover(s)
    reach = closure(edges, n)
    together = reach & reach.T
    parts = {frozenset(np.flatnonzero(row).tolist()) for row in together}
    closed = {part for part in parts if all(set(np.flatnonzero(reach[s])) <= part for s in part)}
    found = findings.classes(model, 0.1)
    assert found.number == len(parts)
    assert found.largest == max(map(len, parts))
    entered = {part for part in closed if any(t in part and s not in part for s, t in edges)}
    assert sorted(trap.states for trap in found.traps) == sorted(map(len, entered))
    assert found.communicating == (len(parts) == 1)


def test_a_state_that_was_hardly_tried_is_no_trap():
    model = EmpiricalModel(2, 2)
    model.update([0, 0, 1], [0, 1, 0], [0, 1, 1])
    for s in range(2):
        model.discover(s)
    assert findings.classes(model, 0.1).traps == ()
    model.update(1, 1, 1)
    (trap,) = findings.classes(model, 0.1).traps
    assert (trap.states, trap.names, trap.tried) == (1, ("1",), 1)


class Leaking(Scripted):
    """Keeps 20 kB a step."""

    kept: list

    def step(self, action):
        self.kept.append(np.ones(2500))
        return super().step(action)


MEASURED = """
import json, sys
sys.path[:0] = sys.argv[1:]
import gosprl
from test_findings import Leaking, Scripted
leaking = Leaking()
leaking.kept = []
found = [gosprl.probe(system, seed=0, need=100) for system in (Scripted(), leaking)]
print(json.dumps([[probe.cost.leaks, probe.cost.memory, repr(probe)] for probe in found]))
"""


def test_a_leak():
    """In a process of its own: what other tests have freed would be used again, and memory would not grow."""
    here = Path(__file__).parent
    command = [sys.executable, "-c", MEASURED, str(here), str(here.parent), str(here.parents[1])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    plain, leaking = json.loads(done.stdout)
    assert not plain[0]
    assert leaking[0]
    assert leaking[1] == pytest.approx(20_000, rel=0.3)
    assert "the system may leak" in leaking[2]


def test_states_that_go_on_appearing():
    class Endless:
        def reset(self, seed=None):
            self.at = 0
            return 0, {}

        def step(self, action):
            self.at += action
            return self.at, 0.0, False, False, {}

    found = gosprl.probe(Endless(), actions=2, need=3, max_steps=600, seed=0)
    assert found.size.growing
    assert found.size.late > 10
    assert found.size.at_most is None
    assert not found.met
    assert found.forecast.high > 2 * found.forecast.low
    assert "new states in the last 60 steps" in repr(found)


class Line:
    """Cells 0, 1, ...; "go" leads to the next one, and from the last one to "out", where episodes end."""

    def __init__(self, length):
        self.length = length

    def reset(self, seed=None):
        self.at = 0
        return 0, {}

    def step(self, action):
        self.at += 1
        ended = self.at == self.length
        return -1 if ended else self.at, 0.0, ended, False, {}


def test_where_an_episode_ended_is_no_new_state():
    for steps in range(200, 203):  # the last step ends an episode in one of them
        assert gosprl.probe(Line(3), actions=1, need=1000, max_steps=steps, seed=0).size.late == 0


def test_what_only_a_cut_episode_leads_to_is_no_new_state_for_ever():
    for steps in range(200, 203):
        found = gosprl.probe(Line(9), actions=1, need=1000, horizon=3, max_steps=steps, seed=0)
        assert (found.states, found.size.late) == (4, 0)


def test_a_probe_without_a_step_says_so():
    assert "none was made (met), so nothing is known" in repr(gosprl.probe(Line(3), actions=1, need=0, seed=0))


def test_a_need_of_states_is_not_about_pairs():
    found = gosprl.probe(gosprl.envs.make("riverswim6"), need=np.full(6, 2), max_steps=500, seed=0)
    assert "for 6 states; the guarantee would be" in repr(found)
