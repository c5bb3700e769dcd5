"""Samples leave their queue in the order of issue, whatever comes back first."""

import numpy as np

from gosprl.fleet.samples import Queues, Result


def numbers(samples):
    return [sample.number for sample in samples]


def test_a_sample_waits_for_those_issued_before_it():
    queues = Queues()
    a, b, c = (queues.issue(number, 5, True) for number in (3, 4, 9))
    other = queues.issue(10, 6, True)
    for early in (c, b, other):
        early.outcome = Result(0, 0.0)
    assert queues.waiting == 3
    assert queues.settled(5) == []
    assert numbers(queues.settled(6)) == [10]
    a.outcome = Result(1, 0.0)
    assert numbers(queues.settled(5)) == [3, 4, 9]
    assert queues.settled(5) == []
    assert queues.waiting == 0


def test_an_unknown_sample_keeps_its_place_and_holds_nobody_up():
    queues = Queues()
    a, b = (queues.issue(number, 0, True) for number in range(2))
    b.outcome, a.is_unknown = Result(0, 0.0), True
    assert numbers(queues.settled(0)) == [0, 1]


def test_a_dropped_sample_never_was_there():
    queues = Queues()
    a, b = (queues.issue(number, 0, True) for number in range(2))
    b.outcome = Result(0, 0.0)
    queues.drop(a)
    assert numbers(queues.settled(0)) == [1]


def test_rows_that_get_other_numbers_keep_their_samples():
    queues = Queues()
    a, b = queues.issue(0, 0, True), queues.issue(1, 1, True)
    queues.renumber(np.array([0, 4]))
    assert (a.row, b.row) == (0, 4)
    b.outcome = Result(0, 0.0)
    assert numbers(queues.settled(4)) == [1]


def test_an_unknown_sample_that_left_its_queue_follows_its_row():
    queues = Queues()
    lost = queues.issue(0, 1, True)
    lost.is_unknown = True
    queues.unknown += queues.settled(1)
    queues.renumber(np.array([0, 4]))
    assert lost.row == 4
