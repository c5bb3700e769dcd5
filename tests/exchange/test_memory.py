"""Memory does not grow with the log."""

import subprocess
import sys

MEASURED = """
import resource, sys
import gosprl
from gosprl.exchange import convert, export

folder, mdp = sys.argv[1], gosprl.envs.make("riverswim6")
peaks = []
for steps in (200_000, 1_000_000):
    run = f"{folder}/{steps}"
    gosprl.collect(mdp, need=10**9, seed=0, strategy="random", max_steps=steps, out=run)
    for ending in ("parquet", "csv", "npz"):
        export(run, f"{run}.{ending}")
    convert(f"{run}.csv", f"{run}-converted.npz")
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
print(peaks[1] - peaks[0])
"""


def test_peak_of_exports(tmp_path):
    done = subprocess.run([sys.executable, "-c", MEASURED, tmp_path], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 20  # MiB; the columns of the rows more have 30
