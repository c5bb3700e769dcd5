"""The counts of a model in plain dictionaries, written transition by transition."""

from collections import Counter, defaultdict

import numpy as np
from hypothesis import strategies as st

TWO = np.array([[True, False], [True, True]])  # rows 0: (0, 0), 1: (1, 0), 2: (1, 1)
TWO3 = np.array([[True, False], [True, True], [True, True]])


class PlainCounts:
    """The counts that an EmpiricalModel over the pairs of a mask should have."""

    def __init__(self, mask):
        self.pairs = [(int(s), int(a)) for s, a in np.argwhere(mask)]
        self.shape = (*mask.shape, len(mask))
        self.count = Counter()  # (row, s_next) -> N
        self.visits = Counter()
        self.appeared = defaultdict(list)  # row -> [(s_next, visit at which it first appeared)]
        self.rewards = defaultdict(list)
        self.log = []  # rows in the order of the updates

    def add(self, row, s_next, reward=0.0):
        self.visits[row] += 1
        if not self.count[row, s_next]:
            self.appeared[row].append((s_next, self.visits[row]))
        self.count[row, s_next] += 1
        self.rewards[row].append(reward)
        self.log.append(row)

    def changed_since(self, position):
        return list(dict.fromkeys(reversed(self.log[position:])))

    def check(self, model):
        R = range(len(self.pairs))
        np.testing.assert_array_equal(model.visits, [self.visits[r] for r in R])
        np.testing.assert_array_equal(model.reward_sum, [sum(self.rewards[r]) for r in R])
        np.testing.assert_array_equal(model.reward_sq, [sum(x * x for x in self.rewards[r]) for r in R])
        triples = sorted((*self.pairs[r], x, n) for (r, x), n in self.count.items() if n)
        assert list(zip(*(part.tolist() for part in model.transitions()), strict=True)) == triples
        self.check_stored(model, None)
        P = np.zeros(self.shape)
        for r, (s, a) in enumerate(self.pairs):
            seen = sorted(x for x, _ in self.appeared[r])
            frequencies = [self.count[r, x] / self.visits[r] for x in seen]
            states, p = model.p_hat(s, a)
            assert states.tolist() == seen
            assert p.tolist() == frequencies
            P[s, a, seen] = frequencies
        np.testing.assert_array_equal(model.dense(), P)
        assert f"{sum(self.visits.values())} visits, {len(triples)} transitions" in repr(model)

    def check_stored(self, model, rows):
        ptr, succ, count, first = model.stored(rows)
        given = range(len(self.pairs)) if rows is None else rows
        assert np.diff(ptr).tolist() == [len(self.appeared[r]) for r in given]
        assert ptr[0] == 0
        expected = [(x, self.count[r, x], visit) for r in given for x, visit in self.appeared[r]]
        assert list(zip(succ.tolist(), count.tolist(), first.tolist(), strict=True)) == expected


class PlainCandidates(PlainCounts):
    """The same for a model with candidates [R, S]: all of them are stored, seen or not, in increasing order."""

    def __init__(self, mask, possible):
        super().__init__(mask)
        self.possible = possible

    def check(self, model):
        super().check(model)
        assert repr(model).endswith(f" transitions of {self.possible.sum()} possible)")
        assert (model.closed, model.num_candidates) == (True, self.possible.sum())

    def check_stored(self, model, rows):
        ptr, succ, count, first = model.stored(rows)
        given = range(len(self.pairs)) if rows is None else rows
        assert ptr.tolist() == np.cumsum([0] + [self.possible[r].sum() for r in given]).tolist()
        expected = [
            (x, self.count[r, x], dict(self.appeared[r]).get(x, 0))
            for r in given
            for x in np.flatnonzero(self.possible[r]).tolist()
        ]
        assert list(zip(succ.tolist(), count.tolist(), first.tolist(), strict=True)) == expected


@st.composite
def batches(draw):
    """Draw a mask [S, A] and batches of (row, s_next, reward); rewards are eighths, so their sums are exact."""
    S, A = draw(st.integers(1, 8)), draw(st.integers(1, 3))
    mask = np.array(draw(st.lists(st.booleans(), min_size=S * A, max_size=S * A))).reshape(S, A)
    mask[:, draw(st.integers(0, A - 1))] = True
    reward = st.integers(-16, 16).map(lambda n: n / 8)
    transition = st.tuples(st.integers(0, mask.sum() - 1), st.integers(0, S - 1), reward)
    return mask, draw(st.lists(st.lists(transition, max_size=12), max_size=8))


def snapshot(model):
    parts = [*model.stored(), *model.transitions(), model.visits, model.reward_sum, model.reward_sq, model.changed(0)]
    return [part.tolist() for part in parts], model.mark()
