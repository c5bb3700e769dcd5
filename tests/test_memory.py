"""What does not fit into memory says so, with its size and a way out, before any of it is allocated."""

import time
import tracemalloc

import numpy as np
import pytest

from gosprl import EmpiricalModel, InputError, TabularMDP, _checks
from gosprl.envs import make


def far_state():
    """A mistyped number of a state."""
    return TabularMDP(([0, 1], [0, 0], [1, 2**31 - 2], [1.0, 1.0]))


ABSURD = {
    "a model": (lambda: EmpiricalModel(10**12, 4), "states, actions: 1000000000000 x 4 pairs"),
    "more pairs than an int64 holds": (lambda: EmpiricalModel(10**300, 10**300), "states, actions: "),
    "a wide grid": (lambda: make("open_grid", rows=1, columns=10**14), "rows, columns: 1 x 100000000000000 cells"),
    "a large grid": (lambda: make("open_grid", rows=10**6, columns=10**6), "rows, columns: 1000000 x 1000000 cells"),
    "a map": (
        lambda: make("gridworld", map=["S" + "." * 999_999, *["." * 10**6] * 10**5]),
        "map: 100001 x 1000000 cells",
    ),
    "a garnet": (lambda: make("garnet", states=10**10, actions=3, branching=5), "states, actions, branching: "),
    "full rows": (lambda: make("garnet", states=10**6, actions=1, branching=10**6), "states, actions, branching: "),
    "riverswim": (lambda: make("riverswim1000000000000"), "states: 4000000000000 transitions"),
    "noisy riverswim": (lambda: make("noisy_riverswim", states=10**6), "states: .* transitions"),
    "a wheel": (lambda: make("wheel", states=10**12), "states: 5000000000000 transitions"),
    "an epsilon wheel": (lambda: make("epsilon_wheel", epsilons=np.full(10**5, 0.5)), "epsilons: .* transitions"),
    "hard to learn": (
        lambda: make("hard_to_learn", states=10**12, actions=2, diameter=5, need=10**13),
        "states, actions: 6000000000000 transitions",
    ),
    "states of a sparse MDP": (lambda: TabularMDP(([0], [0], [0], [1.0]), states=10**13), "states: 10000000000000 of"),
    "states of an iterator": (lambda: TabularMDP(iter([]), states=10**13, actions=2), "states: 10000000000000 of"),
}


@pytest.mark.parametrize("name", ABSURD)
def test_absurd_sizes_are_refused_at_once(name):
    build, what = ABSURD[name]
    tracemalloc.start()
    begin = time.process_time()
    with pytest.raises(
        InputError, match=rf"^{what}.*needs about ([\d.e+]+|over 1e291) GB of memory, but there are .* GB; "
    ):
        build()
    seconds = time.process_time() - begin
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 1  # of this process: a few milliseconds
    assert peak < 20e6


SMALL = {  # with a machine of a megabyte
    "hitting times": (
        make("riverswim300").hitting_times,
        r"hitting_times: \[S, S\] = \[300, 300\]",
        "0.00144",
        "sample",
    ),
    "a model": (lambda: EmpiricalModel(3000, 4), "states, actions: 3000 x 4 pairs", "0.00137", "mask"),
    "a masked model": (
        lambda: EmpiricalModel(9000, np.ones((9000, 1), bool)),
        "actions: 9000 pairs",
        "0.00103",
        "fewer",
    ),
    "counts": (lambda: EmpiricalModel.over(make_rows()), "rows: counts of 15000 pairs", "0.00123", "fewer"),
    "a grid": (lambda: make("open_grid", rows=60, columns=50), "rows, columns: 60 x 50 cells", "0.0012", "smaller"),
    "a map": (lambda: make("gridworld", map=["S" + "." * 2999]), "map: 1 x 3000 cells", "0.0012", "smaller"),
    "sparse parts": (lambda: TabularMDP(parts()), "P: 8000 transitions", "0.00112", "fewer"),
    "dense whole numbers": (
        lambda: TabularMDP(np.ones((400, 1, 400), dtype=np.int8)),
        r"P: \(400, 1, 400\) as doubles",
        "0.00128",
        "sparse parts",
    ),
    "a table with gaps": (
        lambda: TabularMDP.from_gymnasium({0: {0: [(1.0, 200_000, 0.0, False)]}}, terminals="keep"),
        r"env: rewards \[S, A\] = \[200001, 1\]",
        "0.0016",
        "gaps",
    ),
    "a far state": (far_state, "states: 2147483647 of them", "51.5", "gaps"),
}


def make_rows():
    from gosprl.mdp.rows import Rows

    rows = np.arange(15_000)
    return Rows(np.append(rows, 15_000), 0 * rows, 1)


def parts():
    s = np.arange(8000)
    return s, 0 * s, s, np.ones(8000)


@pytest.mark.parametrize("name", SMALL)
def test_the_message_names_the_size_and_a_way_out(name, monkeypatch):
    build, what, size, way_out = SMALL[name]
    monkeypatch.setattr(_checks, "machine_memory", lambda: 1e6)
    with pytest.raises(
        InputError, match=rf"^{what}.* needs about {size} GB of memory, but there are 0\.001 GB; .*{way_out}"
    ):
        build()


def test_diameters_of_some_goals_do_without_the_matrix(monkeypatch):
    mdp = make("riverswim300")
    expected = mdp.hitting_times().max(axis=0)
    monkeypatch.setattr(_checks, "machine_memory", lambda: 1e6)
    fresh = make("riverswim300")
    np.testing.assert_array_equal(fresh.ssp_diameters([0, 299]), expected[[0, 299]])
    np.testing.assert_array_equal(fresh.ssp_diameters(), expected)


def test_the_machine_says_how_much_it_has(monkeypatch):
    assert 1e8 < _checks.machine_memory() <= 1e15

    def unknown(name):
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr("os.sysconf", unknown, raising=False)
    assert _checks.machine_memory() == np.inf
    _checks.memory("anything", 10**400, "")
    monkeypatch.delattr("os.sysconf")
    assert _checks.machine_memory() == np.inf
    monkeypatch.setattr("os.sysconf", {"SC_PHYS_PAGES": -1, "SC_PAGE_SIZE": 4096}.get, raising=False)
    assert _checks.machine_memory() == np.inf
