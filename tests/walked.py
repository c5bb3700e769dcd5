"""Runs to compare: what a run brought home, the same run by ask and tell, systems of a user's own."""

import signal

import numpy as np
from stepped import Stepped

from gosprl import Collector, TabularMDP
from gosprl.envs import make

RIVER = make("riverswim6")
TOY = make("toy3")
REWARDING = TabularMDP(RIVER.dense(), rewards=np.linspace(0, 1, 12).reshape(6, 2), noise="bernoulli")
OPTIONS = {
    "guarded": {},
    "kl": {"strategy": "gosprl"},
    "bernstein": {"strategy": "gosprl", "confidence": "bernstein", "scale": 0.1},
    "known": {"strategy": "gosprl", "dynamics": RIVER},
    "least-sampled": {"strategy": "gosprl", "goals": "least-sampled"},
    "easiest": {"strategy": "gosprl", "goals": "easiest"},
    "random": {"strategy": "random"},
}


def everything(result):
    """All that a run brought home, in the order in which it was found."""
    model = result.model
    parts = [result.counts, *model.stored(), model.reward_sum, model.reward_sq, result.unmet, result.curve]
    return result.met, result.steps, result.attempts, result.unreachable, [part.tolist() for part in parts]


def table_collector(states, actions, need=1, **options):
    """A collector for a system without endings: its model is that of a table."""
    return Collector(states, actions, need, resets="never", **options)


def by_hand(mdp, need, seed, steps=10**6, **options):
    """Ask and tell, the system drawing from the second stream that the seed spawns; the collector and its walk."""
    exists = mdp.rows.to_dense(np.ones(len(mdp.rows), dtype=bool))
    collector = table_collector(mdp.num_states, exists, need, seed=seed, **options)
    rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(2)[1])
    s, log = mdp.start, []
    while not collector.done and len(log) < steps:
        a = collector.ask(s)
        succ, p = mdp.p(s, a)
        s_next = int(succ[np.searchsorted(np.cumsum(p), rng.random(), side="right")])
        mean = 0.0 if mdp.rewards is None else float(mdp.rewards[mdp.rows.index(s, a)])
        reward = float(rng.random() < mean) if mdp.noise == "bernoulli" else mean
        collector.tell(s, a, s_next, reward)
        log.append((s, a, s_next))
        s = s_next
    return collector, log


def ring(states):
    s = np.arange(states)
    return TabularMDP((s, 0 * s, (s + 1) % states, np.ones(states)))


class Drawn(Stepped):
    """Draws next states; does not say which states can be reached."""

    def take(self, s, action):
        succ, p = self.table.p(s, action)
        return int(self.rng.choice(succ, p=p)), 0.0


class Troubled(Drawn):
    """Fails or is interrupted at given steps."""

    block = 1000

    def __init__(self, mdp, troubles):
        super().__init__(mdp)
        self.troubles = troubles

    def take(self, s, action):
        if len(self.log) in self.troubles:
            raise self.troubles.pop(len(self.log))
        return super().take(s, action)


def possible(result, mdp):
    s, a, s_next, _ = result.model.transitions()
    return bool(np.all(mdp.dense()[s, a, s_next] > 0))


def stop_after(steps, how):
    """A progress function that interrupts, once, after so many steps."""
    done = []

    def progress(status):
        if status["steps"] >= steps and not done:
            done.append(status)
            how()

    return progress


def ctrl_c():
    signal.raise_signal(signal.SIGINT)


def interrupt():
    raise KeyboardInterrupt


def corridor(S):
    """S cells; the first action goes away from cell 0, the second back to it."""
    cells = np.arange(S)
    target = np.concatenate([np.minimum(cells + 1, S - 1), np.maximum(cells - 1, 0)])
    return TabularMDP((np.tile(cells, 2), np.repeat([0, 1], S), target, np.ones(2 * S)), states=S, actions=2)
