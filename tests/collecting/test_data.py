"""Runs that begin with samples: what they count for, and what is promised of them."""

from dataclasses import dataclass

import gymnasium
import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import gosprl
from gosprl import KL, Bernstein, Collector, InputError
from gosprl.cli.app import app
from gosprl.collecting.collect import begun_model, declared
from gosprl.exchange import export
from gosprl.runs.opened import OpenRun
from gosprl.strategies import Attempt, Planner, Strategy
from gosprl.strategies.base import UNLIMITED
from gosprl.systems import Outcome, System, as_system

ENDS = ("ptr", "succ", "lower", "upper", "each", "total")
UNSELECTED = "that the data were not selected by their outcome, are disjoint and independent of the walk"
VOUCHED = "the data in order, disjoint and independent of the walk"


class Walk:
    """States are the tuples (i,): a random walk on five of them, which ends at (4,); its states are discovered."""

    def reset(self, *, seed=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.at = int(self.rng.integers(2))
        return (self.at,), {}

    def step(self, action):
        self.at = max(0, self.at + (1 if self.rng.random() < (0.3, 0.7)[action] else -1))
        return (self.at,), float(action), self.at == 4, False, {}


SYSTEMS = {
    "table": (lambda: gosprl.envs.make("riverswim6"), {}),
    "numbered": (lambda: gymnasium.make("FrozenLake-v1"), {}),
    "discovered": (Walk, {"actions": 2}),
    "anytime": (Walk, {"actions": 2, "resets": "anytime"}),
    "bounded": (Walk, {"actions": 2, "max_states": 9}),
}


@pytest.fixture(params=list(SYSTEMS))
def walked(request, tmp_path):
    """A system, its options, and a run of it."""
    make, options = SYSTEMS[request.param]
    result = gosprl.collect(make(), 15, seed=5, out=tmp_path / "run", max_steps=600, **options)
    return make, options, result, tmp_path / "run"


def log_of(directory):
    """The log of a run, as columns of a table by observation."""
    run = OpenRun.read(directory)
    parts = list(run.contents.batches())
    log = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    flags = {name: (log["flags"] & 1 << i) > 0 for i, name in enumerate(("reset", "terminated", "truncated"))}
    table = {name: log[name] for name in ("action", "reward")} | flags
    if run.names.fixed:
        return table | {name: log[name] for name in ("state", "next_state")}
    shown = [*run.names.keys, None]
    return table | {"s": [shown[i] for i in log["state"]], "s_next": [shown[i] for i in log["next_state"]]}


def part_of(table, begin, end):
    return {name: column[begin:end] for name, column in table.items()}


def begun(make, options, data, order="collected"):
    given = dict(options)
    system = as_system(make(), actions=given.pop("actions", None))
    return begun_model(system, declared(system, **given), data, order)


@pytest.mark.parametrize("family", [KL(0.1), Bernstein(0.1)], ids=["kl", "bernstein"])
def test_half_of_a_run_and_its_rest_have_the_sets_of_the_whole_run(walked, family):
    """Bit for bit: sets depend on the samples in their order, not on where they came from."""
    make, options, result, directory = walked
    table = log_of(directory)
    half = len(table["action"]) // 2
    halves = begun(make, options, [part_of(table, 0, half), part_of(table, half, None)])
    mine = family.intervals(halves.arranged(halves.arrangement()))
    whole = family.intervals(result.model)
    for name in ENDS:
        np.testing.assert_array_equal(getattr(mine, name), getattr(whole, name))


class Rest:
    """Repeats the end of a log, event by event; `Script` asks for exactly that."""

    def __init__(self, table, begin, like):
        self.at = begin
        self.names = ("s", "s_next") if "s" in table else ("state", "next_state")
        self.table = {
            name: table[name] for name in (*self.names, "action", "reward", "reset", "terminated", "truncated")
        }
        for name in ("observation_space", "action_space"):
            if hasattr(like, name):
                setattr(self, name, getattr(like, name))

    def event(self):
        return {name: column[self.at] for name, column in self.table.items()}

    def reset(self, *, seed=None):
        event = self.event()
        assert event["reset"]
        self.at += 1
        return event[self.names[1]], {}

    def step(self, action):
        event = self.event()
        assert (action, False) == (event["action"], event["reset"])
        self.at += 1
        ended = bool(event["terminated"]), bool(event["truncated"])
        return event[self.names[1]], float(event["reward"]), *ended, {}


class RestOfTable(System):
    """The same for a table, which is not reset where the second half begins."""

    ends = False

    def __init__(self, table, begin, mdp):
        self.rest, self.rows, self.begin = Rest(table, begin, None), mdp.rows, int(table["state"][begin])

    def model(self):
        return gosprl.EmpiricalModel.over(self.rows)

    def reset(self):
        return self.begin

    def step(self, action):
        return Outcome(*self.rest.step(action)[:2])


@dataclass(frozen=True)
class Script(Strategy):
    """Take the actions of a log."""

    rest: Rest

    def begin(self, model, need, rng):
        return ScriptPlanner(self.rest, model)


class ScriptPlanner(Planner):
    """The same in a run: one event at a time."""

    may_give_up = False

    def __init__(self, rest, model):
        self.rest, self.model = rest, model

    def attempt(self, s, t):
        rows, event = self.model.rows, self.rest.event()
        policy = np.full(rows.num_states, -1)
        chosen = event["reset"] or self.model.terminal[s]
        policy[s] = rows.ptr[s + 1] - 1 if chosen else rows.index(s, event["action"])
        return Attempt(policy, np.zeros(rows.num_states, dtype=bool), np.full(len(rows), UNLIMITED), 1)


@pytest.mark.parametrize("source", ["log", "parquet"])
def test_half_of_a_run_and_walking_the_rest_is_the_whole_run(walked, source, tmp_path):
    """The first half as data, then a walk that makes exactly the second: counts, first appearances, sets, rewards."""
    make, options, result, directory = walked
    table, system = log_of(directory), make()
    half = len(table["action"]) // 2
    if table["reset"][half:].any():  # a walk begins with a reset
        half += int(np.argmax(table["reset"][half:]))
    is_table = isinstance(system, gosprl.TabularMDP)
    stand_in = RestOfTable(table, half, system) if is_table else Rest(table, half, system)
    rest = stand_in.rest if is_table else stand_in
    data = part_of(table, 0, half)
    if source == "parquet":
        export(directory, tmp_path / "run.parquet")
        data = pq.read_table(tmp_path / "run.parquet").slice(0, half)
    before = np.append(True, (table["terminated"] | table["truncated"])[:-1])
    made = (~table["reset"] | ~before)[half + (not is_table) :].sum()  # steps, and resets that were chosen
    mine = gosprl.collect(
        stand_in, 10**6, strategy=Script(rest), data=data, data_order="collected", max_steps=int(made), **options
    )
    assert rest.at == len(table["action"])
    assert mine.steps == int((~table["reset"][half:]).sum()) >= 80
    np.testing.assert_array_equal(mine.counts, result.counts)
    if not is_table:  # compiled walks discover nothing: all states are known
        assert mine.model.discovered == result.model.discovered
    for name in ("reward_sum", "reward_sq"):
        np.testing.assert_array_equal(getattr(mine.model, name), getattr(result.model, name))
    known = np.flatnonzero(~result.model.certain)
    for mine_part, whole_part in zip(mine.model.stored(known), result.model.stored(known), strict=True):
        np.testing.assert_array_equal(mine_part, whole_part)
    for family in (KL(0.1), Bernstein(0.1)):
        for name in ENDS:
            ends = [getattr(family.intervals(model), name) for model in (mine.model, result.model)]
            np.testing.assert_array_equal(*ends)


def test_data_count_towards_the_need_and_save_steps(walked):
    """Over three seeds, half of a run saves steps, and all of it saves more: all of them if it had met the need."""
    make, options, walk, directory = walked
    table = log_of(directory)
    data = part_of(table, 0, len(table["action"]) // 2)
    had = int((~data["reset"]).sum())
    steps = np.zeros(3, dtype=int)
    for seed in (6, 7, 8):
        asked = {"seed": seed, "max_steps": 5_000, **options}
        alone = gosprl.collect(make(), 15, **asked)
        half = gosprl.collect(make(), 15, data=data, data_order="collected", **asked)
        whole = gosprl.collect(make(), 15, data=directory, **asked)
        steps += alone.steps, half.steps, whole.steps
        assert alone.met
        assert half.met
        assert whole.met
        assert half.counts.sum() == had + half.steps
        assert whole.counts.sum() == walk.steps + whole.steps
        assert half.curve["step"][0] == 0
        assert str(half.guarantee).endswith(f"given {VOUCHED}")
        runs = "given runs that are independent of each other and of the walk"
        assert (runs in str(whole.guarantee)) == (not isinstance(make(), gosprl.TabularMDP))
        assert VOUCHED not in str(whole.guarantee)
    assert steps[0] > steps[1] > steps[2]
    if walk.met:
        assert steps[2] == 0
        assert steps[1] < 0.7 * steps[0]


def test_what_is_met_already_takes_no_step():
    mdp = gosprl.envs.make("riverswim6")
    first = gosprl.collect(mdp, 10, seed=0)
    again = gosprl.collect(mdp, 10, seed=0, data=first, data_order="collected")
    assert (again.met, again.steps, again.stop) == (True, 0, "met")
    assert again.curve.tolist() == [(0, 1.0)]
    more = gosprl.collect(mdp, 20, seed=0, data=first, data_order="collected")
    assert more.limit < gosprl.fluid_limit(mdp, 20)  # of what is missing


def test_samples_selected_by_outcome_are_labelled_and_their_order_is_forgotten():
    """The surprises of a pair put first: "collected" would prove too much, "unknown" does not believe it."""
    mdp = gosprl.envs.make("riverswim6")
    s, a, x = np.zeros(60, dtype=int), np.ones(60, dtype=int), np.array([1] + [0] * 59)
    believed, doubted, counted = (
        begun(lambda: mdp, {}, data, order)
        for data, order in (
            ((s, a, x), "collected"),
            ((s, a, x), "unknown"),
            (([0, 0], [1, 1], [0, 1], [59, 1]), "collected"),
        )
    )
    row = mdp.rows.index([0], [1])
    caps = [float(KL(0.1).intervals(model, row).total[0]) for model in (believed, doubted, counted)]
    assert caps[0] < caps[1] == caps[2] < 1
    for name in ("lower", "upper"):
        ends = [np.sort(getattr(KL(0.1).intervals(model, row), name)) for model in (believed, doubted, counted)]
        np.testing.assert_array_equal(ends[0], ends[1])
        np.testing.assert_array_equal(ends[0], ends[2])
    result = gosprl.collect(mdp, 2, seed=0, data=(s, a, x), data_order="unknown")
    assert result.guarantee.given == (UNSELECTED,)
    assert str(result.guarantee) == f"delta=0.1, given {UNSELECTED}"


def test_with_unknown_order_the_cap_holds_for_every_order():
    """Of all orders of the same samples, with more visits after them, none has a larger cap that is still valid."""
    rng = np.random.default_rng(1)
    mdp = gosprl.envs.make("riverswim6")
    row = mdp.rows.index([1], [1])
    for _ in range(20):
        data = rng.integers(3, size=int(rng.integers(3, 30)))
        later = np.zeros(int(rng.integers(0, 40)), dtype=int)
        if len(later):
            later[rng.integers(len(later))] = 3
        caps = {}
        for order in ("unknown", "collected"):
            for _ in range(10 if order == "collected" else 1):
                x = rng.permutation(data)
                model = begun(lambda: mdp, {}, ([1] * len(x), [1] * len(x), x), order)
                if len(later):
                    model.update([1] * len(later), [1] * len(later), later)
                caps.setdefault(order, []).append(float(KL(0.1).intervals(model, row).total[0]))
        assert caps["unknown"][0] >= max(caps["collected"]) - 1e-12


def test_unknown_order_still_ends_where_nothing_may_hide():
    """The visits without a new successor are counted from the end of the data: `unseen` can be reached."""
    first = gosprl.collect(Walk(), 5, actions=2, seed=0)
    data = {"data": first, "data_order": "unknown"}
    result = gosprl.collect(Walk(), 1, actions=2, seed=1, unseen=0.5, max_steps=20_000, **data)
    assert result.met
    assert result.unseen <= 0.5


def test_the_order_has_to_be_said():
    mdp, counts = gosprl.envs.make("riverswim6"), ([0], [0], [0])
    with pytest.raises(InputError, match="data_order: expected 'collected' or 'unknown' for the arrays"):
        gosprl.collect(mdp, 1, data=counts)
    with pytest.raises(InputError, match="data_order: 'sorted' is not known"):
        gosprl.collect(mdp, 1, data=counts, data_order="sorted")
    with pytest.raises(InputError, match="data_order: expected None without data"):
        gosprl.collect(mdp, 1, data_order="collected")


def test_known_dynamics_take_nothing_for_granted():
    mdp = gosprl.envs.make("riverswim6")
    result = gosprl.collect(mdp, 3, dynamics=mdp, data=([0], [0], [0]), data_order="unknown", seed=0)
    assert str(result.guarantee) == "known dynamics"


def test_candidates_are_held_against_the_data():
    mdp = gosprl.envs.make("riverswim6")
    with pytest.raises(InputError, match="successors: the model has seen"):
        gosprl.collect(mdp, 1, successors=mdp, data=([0], [0], [5]), data_order="collected")
    assert gosprl.collect(mdp, 1, successors=mdp, data=([0], [0], [0]), data_order="collected", seed=0).met


def test_masks_are_learnt_where_the_walk_arrives():
    """Data do not say what was offered: an action that was taken and is not offered now makes a state aliased."""

    class Masked(Walk):
        observation_space = action_space = None

        def reset(self, *, seed=None):
            observation, _ = super().reset(seed=seed)
            return observation, {"action_mask": np.array([1, 0], dtype=np.int8)}

        def step(self, action):
            assert action == 0
            *rest, _ = super().step(action)
            return *rest, {"action_mask": np.array([1, 0], dtype=np.int8)}

    fine = {"s": [(0,), (1,)], "a": [0, 0], "s_next": [(1,), (0,)]}
    result = gosprl.collect(Masked(), 2, actions=2, data=fine, data_order="collected", seed=0)
    assert result.met
    assert "different actions" not in str(result.guarantee)
    odd = {"s": [(0,), (1,)], "a": [1, 0], "s_next": [(1,), (0,)]}
    result = gosprl.collect(Masked(), 1, actions=2, data=odd, data_order="collected", seed=0, max_steps=500)
    assert "that (0,) are states, though they offered different actions" in str(result.guarantee)


def test_a_state_of_the_data_has_offered_all_actions_once_the_walk_was_there():
    """As a state that the walk discovered: if it offers fewer later, it is aliased, also in a run that is resumed."""
    model = begun(Walk, {"actions": 2}, {"s": [(0,), (1,)], "a": [0, 0], "s_next": [(1,), (0,)]})
    record, s = Collector(model=model, need=1).record, model.states.live((0,))
    assert not model.has_offered(s)
    record.step(int(model.rows.index(model.states.live((1,)), 0)), (0,), 0.0, False)
    assert model.has_offered(s)
    record.offer(s, (0,))
    assert model.aliased == {s}


@pytest.mark.parametrize("name", ["estimate_model", "estimate_diameter", "estimate_rewards", "find_treasure"])
def test_applications_begin_with_data(name):
    mdp = gosprl.envs.make("riverswim6")
    arguments = {
        "estimate_model": {"eta": 0.5, "norm": "max"},
        "estimate_diameter": {"epsilon": 0.5, "rule": "certified"},
        "estimate_rewards": {"epsilon": 0.5},
        "find_treasure": {"need": 5},
    }[name]
    application = getattr(gosprl.applications, name)
    alone = application(mdp, seed=0, **arguments)
    again = application(mdp, seed=1, data=alone.collected, data_order="collected", **arguments)
    assert again.reached
    assert again.steps == 0
    assert VOUCHED in again.guarantee.given
    doubted = application(mdp, seed=1, data=alone.collected, data_order="unknown", **arguments)
    assert UNSELECTED in doubted.guarantee.given


def test_the_command_line(tmp_path):
    run = CliRunner().invoke
    made = run(app, ["collect", "riverswim6", "--need", "5", "--seed", "0", "--out", str(tmp_path / "run"), "--json"])
    assert made.exit_code == 0
    again = run(app, ["collect", "riverswim6", "--need", "5", "--data", str(tmp_path / "run"), "--json"])
    assert '"steps": 0' in again.stdout
    (tmp_path / "data.csv").write_text("state,action,next_state\n0,0,0\n")
    asked = run(app, ["collect", "riverswim6", "--data", str(tmp_path / "data.csv")])
    assert asked.exit_code == 2
    two = ["--data", str(tmp_path / "data.csv"), "--data", str(tmp_path / "run"), "--data-order", "unknown"]
    done = run(app, ["estimate-model", "riverswim6", "--eta", "0.9", "--norm", "max", "--json", "--seed", "0", *two])
    assert done.exit_code == 0
    assert UNSELECTED in done.stdout
