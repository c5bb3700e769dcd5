"""The log of a run, read without the project: with Arrow alone."""

import json

import numpy as np
import pyarrow as pa

FLAGS = {"reset": 1, "terminated": 2, "truncated": 4, "crash": 8, "unknown": 16, "late": 32}


def log_of(run):
    """The columns of a log, flags as truth values, as the documentation says."""
    streams = [pa.ipc.open_stream(pa.OSFile(str(file))) for file in sorted((run / "log").glob("*.arrow"))]
    columns = {name: column.to_numpy() for name, column in zip(*_table(streams), strict=True)}
    flags = columns.pop("flags")
    return columns | {name: (flags & bit) > 0 for name, bit in FLAGS.items()}


def _table(streams):
    table = pa.concat_tables([stream.read_all() for stream in streams])
    return table.column_names, table.columns


def observations_of(run):
    """The texts of the states by number; None if they have none."""
    file = run / "states.arrow"
    if not file.exists() or not file.stat().st_size:
        return None
    names = pa.ipc.open_stream(pa.OSFile(str(file))).read_all().to_pylist()
    texts = [row["observation"] for row in names if row["kind"] == "state"]
    return texts or None


def texts_of(run, numbers):
    """The text of each number, None for negative ones."""
    texts = observations_of(run)
    return [None if n < 0 else texts[n] for n in np.asarray(numbers).tolist()]


def manifest_of(run):
    return json.loads((run / "manifest.json").read_text())


def certificate_of(run):
    return json.loads((run / "certificate.json").read_text())
