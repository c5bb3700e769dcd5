"""evidence.guard_states: its systems are as large as it says, and what it prints of runs is true of them."""

import numpy as np

from evidence import guard_states
from evidence.guard import rounds
from evidence.runs import Runs


def test_members_have_a_thousand_to_twenty_thousand_states():
    sizes = [rounds(*member)[0].num_states for member in guard_states.MEMBERS]
    assert sizes == [1306, 2421, 4946, 9996, 19995]


def test_a_row_says_what_the_runs_were(monkeypatch):
    made = {
        "gosprl": Runs(np.array([100, 300]), np.array([True, True]), *np.zeros((2, 2), int), *np.full((2, 2), np.nan)),
        None: Runs(
            np.array([400, 800]),
            np.array([True, False]),
            *np.zeros((2, 2), int),
            np.array([0, 200]),
            np.array([800, 800]),
        ),
    }
    monkeypatch.setattr(guard_states, "SHOWN", ("certified", "guarded"))
    monkeypatch.setattr(guard_states, "many", lambda mdp, options, runs, **more: made[options.get("strategy")])
    assert list(guard_states.rows((5, 2, 10, 3), 2)) == [
        "| 27 | 5 | 2 | certified | 100 to 300 | 1 | - | - |",
        "| 27 | 5 | 2 | guarded | 400 to 800 (1 stopped) | 3.00 | 0.50 to 1 | 0 to 25 % |",
    ]
