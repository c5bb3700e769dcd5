"""Numbers that several kernels share."""

TINY = 1e-14  # probability mass that need not be placed; without it values are lower, which is optimistic
FEASIBLE = 1e-9  # a set counts as empty if its bounds on the total mass miss 1 by more than this
TIE = 1e-6  # rows within this of the least value (times the smallest cost, if below 1) count as equally good
ROUNDING = 64 * 2.0**-52  # a residual below this, relative to the values, that no longer falls is rounding error
FEW = 10  # sweeps of a policy that is not certified to reach the goals
HISTORY = 6  # sweeps between two extrapolations of a policy's value
ROUNDS = 10  # sweeps of a region before it is rebuilt from the greedy policy
FIRST_CAPACITY = 4  # slots for successors that a row gets on its first visit
FAR = 1e150  # the largest weight of an edge: sums of weights stay finite
DEAD = 1e300  # value of a state that cannot reach a goal: finite, since 0 * inf is nan, and larger than all others
CONVERGED, ROUNDED, OUT_OF_SWEEPS, UNPLACED_MASS = 0, 1, 2, 3  # how an iteration ended
COUNTED, NO_ROOM, FOREIGN, INVALID = 0, -1, -2, -3  # a transition was counted; or it was not, because the pool is full,
# because the successor is no candidate, or because the policy's row does not belong to the state
