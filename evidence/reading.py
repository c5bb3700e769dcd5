"""Reads the log of a run by the description of its format alone, without the package: Arrow, SHA-256 and NumPy."""

import hashlib
import json
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa

WIDTH = 138  # of a line of log/chain
RESET, TERMINATED, TRUNCATED = 1, 2, 4
COLUMNS = ("walker", "order", "state", "action", "next_state", "reward", "flags")


def chained(directory):
    """(columns, observations, action values) of everything that the chain of digests covers; ValueError if broken."""
    directory = Path(directory)
    run = json.loads((directory / "manifest.json").read_text())["run"]
    chain = directory / "log" / "chain"
    data = chain.read_bytes() if chain.exists() else b""
    digest, files = hashlib.sha256(run.encode()).digest(), {}
    for number, begin in enumerate(range(0, len(data) - WIDTH + 1, WIDTH), 1):
        line = data[begin : begin + WIDTH]
        if b"\0" in line and not data[begin + line.index(b"\0") :].strip(b"\0"):
            break  # a line that a power cut left incomplete
        fields = line[:-74]
        own, file, offset, length, _, said, check = line.decode().split()
        if int(check, 16) != zlib.crc32(line[:-9]) or int(own) != number:
            raise ValueError(f"line {number} of the chain is damaged")
        if file not in files:
            files[file] = (directory / file).read_bytes(), 0
        content, end = files[file]
        batch = content[int(offset) : int(offset) + int(length)]
        digest = hashlib.sha256(digest + fields + batch).digest()
        if int(offset) != end or digest.hex() != said:
            raise ValueError(f"batch {number} in {file} is not what was written")
        files[file] = content, end + len(batch)
    parts = [_table(files[file]) for file in sorted(files) if file.startswith("log/")]
    columns = {name: np.concatenate([_column(part, name) for part in parts] or [np.zeros(0)]) for name in COLUMNS}
    columns["flags"] = columns["flags"].astype(np.uint8)
    names = _table(files["states.arrow"]).to_pylist() if "states.arrow" in files else []
    observations = [row["observation"] for row in names if row["kind"] == "state"]
    return columns, observations, [row["observation"] for row in names if row["kind"] == "action"]


def _table(file):
    content, end = file
    return pa.ipc.open_stream(pa.py_buffer(content[:end])).read_all()


def _column(table, name):
    return table.column(name).to_numpy()


def steps_of(columns, observations, actions, kind):
    """The steps of a log as a system's journal has them: "all" of a step, or "steps" without reward and ending."""

    def observed(state):
        return _plain(observations[state]) if observations else str(state)

    out = []
    for state, action, following, reward, flags in zip(*(columns[name].tolist() for name in COLUMNS[2:]), strict=True):
        if not flags & RESET:
            step = [observed(state), _plain(actions[action]) if actions else str(action), observed(following)]
            more = [str(reward), str(int((flags & TERMINATED) > 0)), str(int((flags & TRUNCATED) > 0))]
            out.append(step + more if kind == "all" else step)
    return out


def _plain(text):
    return text.strip('"[]').replace(", ", ",").replace(" ", "_")


def journal_of(path):
    """The lines of a system's own journal."""
    lines = path.read_text().splitlines() if path.exists() else []
    steps = [line.replace(",_", ",").split(" ") for line in lines]
    return [[*step[:5], "0"] if step[4:] == ["1", "1"] else step for step in steps]  # an ending is no cut-off, too
