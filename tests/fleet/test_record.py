"""The record of a fleet against a naive one that keeps every sample, for any order of issues, returns and losses."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import gosprl
from gosprl.collecting.requirements import as_requirement
from gosprl.collecting.surroundings import Surroundings
from gosprl.fleet.record import FleetRecord

S, A = 3, 2
OPEN, UNKNOWN = "open", "unknown"


class Naive:
    """All samples of each row in the order of issue: an outcome, OPEN or UNKNOWN; dropped ones are taken out."""

    def __init__(self):
        self.rows = {row: {} for row in range(S * A)}  # row -> number of the order -> what became of it

    def committed(self, row):
        """(counts by outcome, unknown places) of the longest beginning in which nothing is open."""
        begin = []
        for what in self.rows[row].values():
            if what == OPEN:
                break
            begin.append(what)
        return Counter(what for what in begin if what != UNKNOWN), begin.count(UNKNOWN)

    def returned(self, row):
        return Counter(what for what in self.rows[row].values() if what not in (OPEN, UNKNOWN))

    def in_flight(self, row):
        return sum(what == OPEN for what in self.rows[row].values())


def counts_of(model, row):
    _, succ, number, _ = model.stored(np.array([row]))
    return Counter({int(s): int(n) for s, n in zip(succ, number, strict=True) if n})


def check(record, naive, pair, state):
    record.flush()
    need, asked = record.need, pair
    missing = 0
    for row in naive.rows:
        counts, unknown = naive.committed(row)
        assert counts_of(record.counts, row) == counts
        assert record.counts.unknown[row] == unknown
        assert record.counts.pending[row] == len(naive.rows[row]) - counts.total() - unknown
        assert record.counts.visits[row] == counts.total()
        assert counts_of(record.model, row) == naive.returned(row)
        assert need.pair[row] == max(0, asked[row] - naive.in_flight(row))
        missing += max(0, need.pair[row] - naive.returned(row).total())
    for s in range(S):
        rows = range(A * s, A * s + A)
        in_flight = sum(naive.in_flight(row) for row in rows)
        visits = sum(naive.returned(row).total() for row in rows)
        assert need.state[s] == max(0, state[s] - in_flight)
        missing += max(0, need.state[s] - visits)
        short = [row for row in rows if naive.returned(row).total() < need.pair[row]]
        assert need.unmet_items[s] == len(short) + (visits < need.state[s])
    assert need.missing == missing
    assert record.in_flight == sum(map(naive.in_flight, naive.rows))
    assert record.begun == record.steps + record.in_flight
    waiting = sum(naive.returned(row).total() - naive.committed(row)[0].total() for row in naive.rows)
    assert record.waiting == waiting


@pytest.mark.parametrize("per_state", [False, True])
@settings(max_examples=150, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate])
@given(seed=st.integers(0, 2**32 - 1), length=st.integers(5, 80))
def test_any_order_of_issues_returns_and_losses(per_state, seed, length):
    rng = random.Random(seed)
    model = gosprl.EmpiricalModel(S, A)
    asked = np.array([4, 0, 7]) if per_state else np.array([[3, 1], [0, 5], [2, 2]])
    record, naive = FleetRecord(model, as_requirement(asked, model)), Naive()
    record.update_need()
    pair, state = (np.zeros(S * A, int), asked) if per_state else (asked.ravel(), np.zeros(S, int))
    flying, late, issued, dropped = [], [], 0, 0
    for _ in range(length):
        what = rng.choice(["issue", "issue", "issue", "return", "return", "lose", "fill", "update"])
        if what == "issue":
            row = rng.randrange(S * A)
            before = record.need.unmet_items[row // A]
            sample, settled = record.issue(issued, row)
            assert settled == bool(before and not record.need.unmet_items[row // A])
            naive.rows[row][issued] = OPEN
            flying.append(sample)
            issued += 1
        elif what == "update":
            record.update_need()
        elif what == "fill" and late:
            sample = late.pop(rng.randrange(len(late)))
            naive.rows[sample.row][sample.number] = s_next = rng.randrange(S)
            assert record.fill(sample, s_next, 0.5, terminated=False) == s_next
        elif what in ("return", "lose") and flying:
            sample = flying.pop(rng.randrange(len(flying)))
            if what == "return":
                naive.rows[sample.row][sample.number] = s_next = rng.randrange(S)
                record.returning = sample
                record.step(sample.row, s_next, 0.5, terminated=False)
            elif rng.random() < 0.5:
                naive.rows[sample.row][sample.number] = UNKNOWN
                record.give_up(sample, "unknown")
                late.append(sample)
            else:
                del naive.rows[sample.row][sample.number]
                record.give_up(sample, "independent")
                dropped += 1
        check(record, naive, pair, state)
    assert record.begun == issued
    for sample in flying:
        naive.rows[sample.row][sample.number] = 0
        record.returning = sample
        record.step(sample.row, 0, 0.5, terminated=False)
    check(record, naive, pair, state)
    # drained: what is committed is what returned, and everything was counted once
    assert record.waiting == record.in_flight == 0
    assert (record.counts.visits == record.model.visits).all()
    assert record.counts.reward_sum.tolist() == record.model.reward_sum.tolist()
    assert record.steps == issued == record.model.visits.sum() + record.counts.unknown.sum() + dropped
    visits = record.model.visits
    needed = np.minimum(visits, pair).sum() + np.minimum(visits.reshape(S, A).sum(axis=1), state).sum()
    assert record.need.collected == needed


def test_what_is_in_flight_beyond_the_need_does_not_hide_needed_samples():
    """Three in flight where two are needed: two of them are needed samples, whichever come first."""
    model = gosprl.EmpiricalModel(2, 1)
    record = FleetRecord(model, as_requirement(np.array([[2], [0]]), model))
    record.update_need()
    samples = [record.issue(number, 0)[0] for number in range(3)]
    for sample in reversed(samples):
        record.returning = sample
        record.step(0, 1, 0.0, terminated=False)
    assert record.need.collected == 2


def test_a_state_that_is_met_by_what_is_in_flight_is_unmet_again_if_that_is_lost():
    model = gosprl.EmpiricalModel(2, 1)
    record = FleetRecord(model, as_requirement(1, model))
    record.update_need()
    version = record.need.version
    sample, settled = record.issue(0, 0)
    assert settled
    assert record.need.settled == [0]
    assert record.need.version == version
    record.give_up(sample, "unknown")
    assert record.need.unmet_items.tolist() == [1, 1]
    assert record.need.version == version + 1  # planners that dropped the goal look again


def test_a_lost_sample_as_a_state_of_its_own_is_a_crash_with_an_allowed_reward():
    model = gosprl.EmpiricalModel(2, 1)
    Surroundings("terminal", 1.0, None, None, None).prepare(model)
    record = FleetRecord(model, as_requirement(1, model), rewards=(1.0, 2.0))
    record.update_need()
    sample, _ = record.issue(0, 0)
    record.give_up(sample, "state")
    record.flush()
    assert record.counts.visits[0] == record.model.visits[0] == 1
    assert record.counts.unknown.sum() == 0
    assert record.counts.reward_sum[0] == 1.0
