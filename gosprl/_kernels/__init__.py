"""Every compiled function of gosprl, one module per subject.

Shapes: S states, R rows (existing pairs), nnz stored successors. The rows of state s are row_ptr[s] : row_ptr[s + 1],
the stored successors of row r are ptr[r] : ptr[r + 1].

Rules for a kernel:

- It is a free function of arrays, named tuples of arrays and numbers. No Python objects, no global randomness. The
  caller passes the arrays it writes to; inner loops do not allocate.
- It gives the same bits compiled and interpreted (NUMBA_DISABLE_JIT=1): scalar `math` only, no NumPy reductions (they
  round in another order when compiled), stable sorts (`arrays.sort_by`). tests/kernels/test_kernels.py calls every
  kernel both ways.
- It does not check its input. An index out of range reads or overwrites other memory, so callers validate first.
- It is compiled for one combination of types. Callers pass writable C-contiguous arrays, int64 (successors: int32),
  float64 or bool, and the same kind of number every time. Inside of kernels, a count that starts as a literal (n = 0)
  and is passed on makes numba compile the called kernel twice: take it from `len` or `arrays.count`.
- NumPy calls that compile slowly (argsort, assignment of slices) are loops instead (`arrays`).
- Global numbers that it uses are defined in this package (see `_jit`).
"""

from gosprl._kernels.arrays import copy_to, count, members, sort_by
from gosprl._kernels.average import average, sweep_relative
from gosprl._kernels.certificates import (
    average_errors,
    largest_move,
    largest_moves,
    largest_split_move,
    largest_sum,
    lipschitz_errors,
)
from gosprl._kernels.constants import (
    CONVERGED,
    COUNTED,
    DEAD,
    FAR,
    FEASIBLE,
    FEW,
    FIRST_CAPACITY,
    FOREIGN,
    HISTORY,
    INVALID,
    NO_ROOM,
    OUT_OF_SWEEPS,
    ROUNDED,
    ROUNDING,
    ROUNDS,
    TIE,
    TINY,
    UNPLACED_MASS,
)
from gosprl._kernels.counts import (
    CLOSED,
    NEWEST,
    UPDATES,
    USED,
    Counts,
    changed_since,
    first_foreign,
    record,
    record_many,
    slot_of,
    touch,
    touch_many,
)
from gosprl._kernels.focus import (
    APPLIED,
    LINKS,
    SIZE,
    STAMP,
    TOUCHED,
    Links,
    Lowest,
    Region,
    exceeds_goals,
    expand,
    focus,
    link,
    lower_values,
    raise_values,
)
from gosprl._kernels.graph import (
    head_start,
    lightest_paths,
    predecessors,
    reach,
    reversed_edges,
    search_back,
    sift_down,
    sift_up,
)
from gosprl._kernels.intervals import kl_end, kl_intervals, kl_means, kl_upper, unseen_cap, unseen_end
from gosprl._kernels.need import Ledger, note, note_many, recount
from gosprl._kernels.operator import Frozen, accumulate, frozen_room, new_frozen, rank_states, sweep, sweep_frozen
from gosprl._kernels.sets import Sets, check_rows, has_slack, is_open, replace_rows, stays_alive
from gosprl._kernels.ssp import direct_start, evaluate, extrapolate, rounding_error, solve
from gosprl._kernels.ties import Seen, greedy, hashed_uniform, pick
from gosprl._kernels.walk import Course, Dynamics, drawn_row, under_sampled_row, walk, why_ended

__all__ = [
    "APPLIED",
    "CLOSED",
    "CONVERGED",
    "COUNTED",
    "DEAD",
    "FAR",
    "FEASIBLE",
    "FEW",
    "FIRST_CAPACITY",
    "FOREIGN",
    "HISTORY",
    "INVALID",
    "LINKS",
    "NEWEST",
    "NO_ROOM",
    "OUT_OF_SWEEPS",
    "ROUNDED",
    "ROUNDING",
    "ROUNDS",
    "SIZE",
    "STAMP",
    "TIE",
    "TINY",
    "TOUCHED",
    "UNPLACED_MASS",
    "UPDATES",
    "USED",
    "Counts",
    "Course",
    "Dynamics",
    "Frozen",
    "Ledger",
    "Links",
    "Lowest",
    "Region",
    "Seen",
    "Sets",
    "accumulate",
    "average",
    "average_errors",
    "changed_since",
    "check_rows",
    "copy_to",
    "count",
    "direct_start",
    "drawn_row",
    "evaluate",
    "exceeds_goals",
    "expand",
    "extrapolate",
    "first_foreign",
    "focus",
    "frozen_room",
    "greedy",
    "has_slack",
    "hashed_uniform",
    "head_start",
    "is_open",
    "kl_end",
    "kl_intervals",
    "kl_means",
    "kl_upper",
    "largest_move",
    "largest_moves",
    "largest_split_move",
    "largest_sum",
    "lightest_paths",
    "link",
    "lipschitz_errors",
    "lower_values",
    "members",
    "new_frozen",
    "note",
    "note_many",
    "pick",
    "predecessors",
    "raise_values",
    "rank_states",
    "reach",
    "record",
    "record_many",
    "recount",
    "replace_rows",
    "reversed_edges",
    "rounding_error",
    "search_back",
    "sift_down",
    "sift_up",
    "slot_of",
    "solve",
    "sort_by",
    "stays_alive",
    "sweep",
    "sweep_frozen",
    "sweep_relative",
    "touch",
    "touch_many",
    "under_sampled_row",
    "unseen_cap",
    "unseen_end",
    "walk",
    "why_ended",
]
