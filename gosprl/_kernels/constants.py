"""Numbers that several kernels share."""

TINY = 1e-14  # probability mass not worth placing; leaving it out errs towards optimism
FEASIBLE = 1e-9  # how far a set may be from containing a distribution before it counts as empty
TIE = 1e-6  # actions within this of the best (times the smallest cost, if below one) count as equally good
ROUNDING = 64 * 2.0**-52  # residuals below this, relative to the values, that no longer fall are rounding noise
FEW = 10  # sweeps of a policy that is not known to reach the goals
HISTORY = 6  # sweeps from which a policy's value is extrapolated
ROUNDS = 10  # sweeps of a region before its policy is followed again
FIRST_CAPACITY = 4  # successors that a row has room for when it is first visited
FAR = 1e150  # the largest weight of an edge
DEAD = 1e300  # value of a state that cannot reach a goal: sorts last, and 0 * DEAD is 0
CONVERGED, ROUNDED, OUT_OF_SWEEPS, HUNGRY = 0, 1, 2, 3
COUNTED, NO_ROOM, FOREIGN, INVALID = 0, -1, -2, -3  # of a transition: counted; not, since the pool is full, since the
# successor is no candidate, since the policy has no such row
