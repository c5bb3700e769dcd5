"""Compare strategies on a system: runs of each with the same seeds, a table with intervals, and a picture."""

from gosprl.comparing.comparison import Comparison
from gosprl.comparing.running import compare

__all__ = ["Comparison", "compare"]
