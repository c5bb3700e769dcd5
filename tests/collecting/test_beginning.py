"""Runs that stop before their first state: nothing is met, whatever walks and wherever the run is kept."""

import gymnasium
import pytest
from fleet_logs import fleet
from typer.testing import CliRunner

import gosprl
from gosprl import applications
from gosprl.cli.app import app
from gosprl.runs import show, verify

QUESTIONS = {
    "find_treasure": {},
    "estimate_model": {"eta": 0.5},
    "estimate_diameter": {"epsilon": 0.5},
    "explore_all_goals": {"epsilon": 0.5, "theta": 3.0},
    "learn_policy": {"gamma": 0.9, "epsilon": 0.5},
    "best_state": {},
    "estimate_rewards": {"epsilon": 0.5},
}
DIES = """read -r hello; echo '{"type": "hello", "protocol": 1, "actions": 2}'; read -r reset; exit 3"""


class Shut(gymnasium.Env):
    """A system that cannot be reset until it is opened."""

    action_space = gymnasium.spaces.Discrete(2)
    open = False

    def __init__(self, error, space=None):
        self.error, self.observation_space = error, space or gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        if not self.open:
            raise self.error("the door is shut")
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


def outcome_of(collect):
    try:
        return collect()
    except gosprl.CollectionError as error:
        return error.result


def assert_nothing_is_met(result):
    assert not result.met
    assert result.stop != "met"
    assert (result.steps, result.states) == (0, 0)
    assert result.curve["proportion"].max(initial=0.0) == 0.0


@pytest.mark.parametrize("space", [gymnasium.spaces.Discrete(3), gymnasium.spaces.MultiDiscrete([2, 2])])
@pytest.mark.parametrize(("error", "stop"), [(KeyboardInterrupt, "interrupted"), (OSError, "failed")])
def test_one_walker(error, stop, space):
    result = outcome_of(lambda: gosprl.collect(Shut(error, space), 1, seed=0))
    assert result.stop == stop
    assert_nothing_is_met(result)


@pytest.mark.parametrize("workers", ["threads:2", "simulated"])
def test_a_fleet(workers):
    made = fleet(lambda: Shut(OSError), 2) if workers == "simulated" else workers
    result = outcome_of(lambda: gosprl.collect(lambda: Shut(OSError), 1, seed=0, workers=made))
    assert result.stop == "failed"
    assert_nothing_is_met(result)


def test_ask_and_tell():
    collector = gosprl.Collector(actions=2, need=1, seed=0)
    assert not collector.done
    assert_nothing_is_met(collector.result())


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("name", QUESTIONS)
def test_an_application(name, error):
    answer = outcome_of(lambda: getattr(applications, name)(Shut(error), seed=0, **QUESTIONS[name]))
    result = getattr(answer, "collected", answer)
    assert_nothing_is_met(result)


def test_a_run_on_disk(tmp_path):
    run, system = tmp_path / "run", Shut(OSError)
    assert_nothing_is_met(outcome_of(lambda: gosprl.collect(system, 1, seed=0, out=run)))
    shown = show(run).facts
    assert shown["certificate"]["met"] is False
    assert shown["progress"]["met"] == 0.0
    needs = [check for check in verify(run).checks if check.name == "need"]
    assert [check.ok for check in needs] == [True]
    assert "not met" in needs[0].text
    assert_nothing_is_met(outcome_of(lambda: gosprl.resume(run, system=system)))
    system.open = True
    result = gosprl.resume(run, system=system)
    assert result.stop == "met"
    assert result.counts.sum() >= 4
    assert verify(run).ok, verify(run)


def test_the_command_says_so(tmp_path):
    (tmp_path / "dies.sh").write_text(DIES)
    run = CliRunner().invoke(app, ["collect", "--process", f"bash {tmp_path}/dies.sh", "--need", "1", "--json"])
    assert run.exit_code == 1
    assert '"met": false' in run.stdout


def test_what_is_there_already_can_be_met_before_the_first_step():
    """A model that has everything needed: nothing is left to be walked."""
    model = gosprl.collect(gosprl.envs.make("riverswim6"), 2, seed=0).model
    collector = gosprl.Collector(model=model, need=2, seed=0)
    assert collector.done
    assert collector.result().met
