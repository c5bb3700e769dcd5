"""Random numbers of a run follow from its seed and from the samples that it begins with: data are not drawn again."""

import json

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import gosprl
from gosprl.applications import estimate_model
from gosprl.collecting import collector as collecting
from gosprl.collecting.streams import begun_digest, entropy_of
from gosprl.envs.tabular_env import TabularEnv
from gosprl.fleet.simulated import Simulated
from gosprl.model.counted import columns_of, digest_of
from gosprl.runs import opened
from gosprl.runs.files import write_json

DICE = gosprl.TabularMDP(np.full((8, 1, 8), 1 / 8), name="dice")  # two walks of 200 steps do not agree by chance
COIN = gosprl.TabularMDP(np.full((2, 1, 2), 0.5), name="coin")
STEPS = 200
MUCH = 10**6


def table(result):
    """[8, 8] how often a state followed another."""
    seen = np.zeros((8, 8), dtype=int)
    for s, _, s_next, n in zip(*result.model.transitions(), strict=True):
        seen[result.model.states[s], result.model.states[s_next]] += n
    return seen


def of_collector(given, seed, **_):
    if given is None:
        return gosprl.Collector(8, 1, MUCH, resets="never", seed=seed).run(DICE, STEPS)
    return gosprl.Collector(model=given.model.copy(), need=MUCH, seed=seed).run(DICE, STEPS)


def collected(system, **options):
    def made(given, seed, **more):
        data = {} if given is None else {"data": given, "data_order": "collected"}
        chosen = {name: value() for name, value in options.items()}
        return gosprl.collect(system(), MUCH, seed=seed, max_steps=STEPS, **data, **chosen, **more)

    return made


def applied(given, seed, **more):
    data = {} if given is None else {"data": given, "data_order": "collected"}
    return estimate_model(DICE, 1e-3, seed=seed, max_steps=STEPS, **data, **more).collected


def env():
    return TabularEnv(DICE)


ROUTES = {
    "table": collected(lambda: DICE),
    "environment": collected(env),
    "application": applied,
    "collector": of_collector,
    "threads": collected(lambda: env, workers=lambda: "threads:1"),
    "simulated fleet": collected(lambda: DICE, workers=lambda: Simulated(DICE, 2, entropy=[0, 7])),
    "simulated fleet of environments": collected(lambda: env, workers=lambda: Simulated(env, 1, entropy=3)),
    "vector environment": collected(lambda: SyncVectorEnv([env, env])),
}
KEPT = ("table", "environment", "application")


@pytest.mark.filterwarnings("ignore:met for the .* states discovered")
@pytest.mark.parametrize("route", ROUTES)
def test_the_seed_of_the_data_does_not_draw_them_again(route):
    run = ROUTES[route]
    first = run(None, 0)
    second = run(first, 0)
    assert first.steps == second.steps == STEPS
    assert (table(second) - table(first)).sum() == STEPS
    assert (table(second) != 2 * table(first)).any()
    np.testing.assert_array_equal(table(run(None, 0)), table(first))  # both follow from seed and data
    np.testing.assert_array_equal(table(run(first, 0)), table(second))
    if not route.startswith("simulated"):  # these have a seed of their own
        assert (table(run(first, 1)) != table(second)).any()


@pytest.mark.parametrize("route", KEPT)
def test_a_run_on_disk_draws_what_one_in_memory_draws(route, tmp_path):
    run = ROUTES[route]
    first = run(None, 0)
    second = run(first, 0)
    run(None, 0, out=tmp_path / "a")
    kept = run(first, 0, out=tmp_path / "b")
    np.testing.assert_array_equal(table(kept), table(second))
    if route == "table":
        of_run = gosprl.collect(DICE, MUCH, seed=0, max_steps=STEPS, data=tmp_path / "a", out=tmp_path / "c")
        np.testing.assert_array_equal(table(of_run), table(second))
    assert gosprl.runs.verify(tmp_path / "b").ok


def test_a_continuation_of_a_fair_coin_is_no_copy(tmp_path):
    first = gosprl.collect(COIN, 100, seed=0, out=tmp_path / "a")
    second = gosprl.collect(COIN, 200, seed=0, data=tmp_path / "a", out=tmp_path / "b")
    third = gosprl.collect(COIN, 300, seed=0, data=tmp_path / "b")
    there, here, last = (result.model.transitions()[3] for result in (first, second, third))
    assert (here != 2 * there).any()
    assert (last != 3 * there).any()
    assert (last - here != there).any()


def test_a_run_in_pieces_draws_what_an_uninterrupted_one_draws(tmp_path):
    first = gosprl.collect(DICE, MUCH, seed=0, max_steps=STEPS, out=tmp_path / "a")
    whole = gosprl.collect(DICE, 50, seed=0, data=tmp_path / "a")
    gosprl.collect(DICE, 50, seed=0, data=tmp_path / "a", out=tmp_path / "b", max_steps=30)
    resumed = gosprl.resume(tmp_path / "b")
    assert first.steps == STEPS
    assert resumed.steps == whole.steps
    np.testing.assert_array_equal(table(resumed), table(whole))
    assert gosprl.runs.verify(tmp_path / "b").ok
    more = gosprl.resume(tmp_path / "b", need=80)
    assert more.met
    assert gosprl.runs.verify(tmp_path / "b").ok


def with_streams(directory, value=None):
    """Let the manifest say another rule; None: none, as before there was another one."""
    file = directory / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["data"].pop("streams", None)
    if value is not None:
        manifest["data"]["streams"] = value
    del manifest["digest"]
    write_json(file, manifest)


def test_runs_of_before_go_on_and_verify_by_their_rule(tmp_path, monkeypatch):
    with monkeypatch.context() as before:
        for module in (collecting, opened):
            before.setattr(module, "entropy_of", lambda seed, begun: seed)
        first = gosprl.collect(DICE, MUCH, seed=0, max_steps=STEPS, out=tmp_path / "a")
        whole = gosprl.collect(DICE, MUCH, seed=0, data=tmp_path / "a", max_steps=STEPS)
        gosprl.collect(DICE, MUCH, seed=0, data=tmp_path / "a", out=tmp_path / "b", max_steps=30)
    with_streams(tmp_path / "b")
    np.testing.assert_array_equal(table(whole), 2 * table(first))  # that was the rule
    assert gosprl.runs.verify(tmp_path / "b").ok
    resumed = gosprl.resume(tmp_path / "b", max_steps=STEPS)
    np.testing.assert_array_equal(table(resumed), table(whole))
    assert gosprl.runs.verify(tmp_path / "b").ok


@pytest.mark.parametrize("value", [None, "seed", 3, ""])
def test_the_rule_of_a_run_cannot_be_exchanged(value, tmp_path):
    gosprl.collect(DICE, MUCH, seed=0, max_steps=STEPS, out=tmp_path / "a")
    gosprl.collect(DICE, 40, seed=0, data=tmp_path / "a", out=tmp_path / "b")
    assert gosprl.runs.verify(tmp_path / "b").ok
    with_streams(tmp_path / "b", value)
    assert gosprl.runs.verify(tmp_path / "b").damaged


def test_nothing_to_begin_with_changes_nothing():
    model = gosprl.EmpiricalModel(2, 1)
    assert begun_digest(model) == ""
    assert entropy_of(5, "") == 5
    assert entropy_of(None, "ab") is None
    assert entropy_of([5, 6], "ff") == [5, 6, 255]


def test_the_digest_is_one_of_content():
    def model_of(*steps):
        model = gosprl.EmpiricalModel(3, 2)
        for s, a, s_next, reward in steps:
            model.update(s, a, s_next, reward)
        return model

    steps = [(0, 0, 1, 0.5), (1, 1, 2, 0.0), (0, 0, 2, 0.25)]
    digest = begun_digest(model_of(*steps))
    assert begun_digest(model_of(*steps)) == digest
    assert begun_digest(model_of(steps[1], steps[0], steps[2])) == digest  # rows in another order
    others = [
        model_of(steps[2], steps[1], steps[0]),  # first appearances
        model_of(*steps, steps[1]),
        model_of(steps[0], steps[1], (0, 0, 2, 0.5)),
        model_of(steps[0], (1, 0, 2, 0.0), steps[2]),
    ]
    assert len({digest, *map(begun_digest, others)}) == 5
    listed = {name: column.tolist() for name, column in columns_of(model_of(*steps)).items()}
    assert digest_of(listed) == digest


def test_resets_of_environments_have_other_seeds():
    seeds = []

    class Told(gymnasium.Wrapper):
        def reset(self, *, seed=None, options=None):
            if seed is not None:
                seeds.append(seed)
            return self.env.reset(seed=seed, options=options)

    first = gosprl.collect(Told(env()), MUCH, seed=0, max_steps=20)
    gosprl.collect(Told(env()), MUCH, seed=0, max_steps=20, data=first, data_order="collected")
    gosprl.collect(Told(env()), MUCH, seed=0, max_steps=20)
    assert seeds[0] == seeds[2] != seeds[1]
