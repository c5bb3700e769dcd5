"""An attempt on a simulated MDP."""

from gosprl._kernels._jit import jit
from gosprl._kernels.constants import (
    FIRST_CAPACITY,
    FOREIGN,
    FOUND,
    GOAL,
    HANDED_BACK,
    LIMIT,
    MET,
    NO_ROOM,
    SETTLED,
    STEPS,
)
from gosprl._kernels.need import fewest_visits, note


@jit
def walk(
    row_ptr, ptr, succ, prob, rewards, bernoulli, counts, ledger, policy, random_policy, goals, limit, sample,
    choices, uniforms, s, steps, events, threshold,
):  # fmt: skip
    """Follow an attempt for at most `steps` steps from s, on an MDP simulated by one uniform a step.

    A step takes one of `uniforms`, two if rewards are Bernoulli, and one of `choices` if the policy is random.

    `policy` [S] are rows (-1: hand back), or, if it is empty, `random_policy` [R] are probabilities; with `sample`,
    what is needed comes first. Writes (step, states unmet) into `events` at each change. Returns (state, steps made,
    events written, why it stopped). A reward above `threshold` ends the walk. A step to a successor that is no
    candidate is not made. In both cases (row, successor) stands in `events`, after those written.
    """
    noted = 0
    closed = counts.scalars[3] != 0
    for step in range(steps):
        if not closed:
            capacity = FIRST_CAPACITY
            for row in range(row_ptr[s], row_ptr[s + 1]):
                capacity = max(capacity, 2 * counts.length[row])
            if counts.scalars[1] + capacity > len(counts.succ):
                return s, step, noted, NO_ROOM  # before anything is drawn
        row = -1
        if sample and ledger.unmet[s] > 0:
            row = fewest_visits(row_ptr, counts.visits, ledger.pair, s)
        if row >= 0:
            pass
        elif len(policy) > 0:
            row = policy[s]
            if row < 0:
                return s, step, noted, HANDED_BACK
        else:
            u = choices[step]
            row = row_ptr[s]
            for row in range(row_ptr[s], row_ptr[s + 1]):
                u -= random_policy[row]
                if u < 0:
                    break
        u = uniforms[step * (1 + bernoulli)]
        cumulative = 0.0
        j = ptr[row]
        for j in range(ptr[row], ptr[row + 1]):
            cumulative += prob[j]
            if u < cumulative:
                break
        reward = rewards[row]
        if bernoulli:
            reward = 1.0 if uniforms[2 * step + 1] < reward else 0.0
        unmet = ledger.scalars[0]
        if note(counts, ledger, row, succ[j], reward) == FOREIGN:
            events[noted, 0] = row
            events[noted, 1] = succ[j]
            return s, step, noted, FOREIGN
        s = succ[j]
        if ledger.scalars[0] != unmet:
            events[noted, 0] = step + 1
            events[noted, 1] = ledger.scalars[0]
            noted += 1
        if reward > threshold:
            events[noted, 0] = row
            events[noted, 1] = s
            return s, step + 1, noted, FOUND
        if ledger.scalars[0] != unmet and ledger.scalars[0] == 0:
            return s, step + 1, noted, MET
        if goals[s]:
            return s, step + 1, noted, GOAL
        if sample and ledger.scalars[0] != unmet:
            return s, step + 1, noted, SETTLED
        if counts.visits[row] > limit[row]:
            return s, step + 1, noted, LIMIT
    return s, steps, noted, STEPS
