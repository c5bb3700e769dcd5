"""Files made by a stranger: parts of evidence/flips.py.

A file of a run is changed and sealed again: JSON with its digest, batches with the chain of digests over them. Then the
run is opened, read, counted and resumed for a few steps. Allowed is only that nothing is wrong, or an error of gosprl;
a process that ends, hangs, or needs much memory is a problem. An audit hook notes every file that is opened for
writing outside of the run, every module that is imported, and every attempt to start or load something.
"""

import dataclasses
import json
import os
import random
import resource
import shutil
import signal
import sys
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

import gosprl
from evidence.flips import RUNS, contents, jobs, original
from gosprl.errors import GosprlError
from gosprl.runs.batches import encoded
from gosprl.runs.chain import CHAIN, NAMES_FILE, Link, first_digest, next_digest
from gosprl.runs.checking import check_undamaged
from gosprl.runs.files import canonical, digest_of
from gosprl.runs.opened import OpenRun
from gosprl.runs.reading import read_log
from gosprl.runs.schemas import LOG, NAMES

CHUNK = 500
SECONDS = 20  # that a case may take
MEMORY = 4 * 2**30  # address space beyond what is used at the start
VALUES = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        7,
        63,
        2**31,
        -(2**31) - 1,
        2**63,
        10**12,
        -(10**12),
        10**30,
        0.5,
        -0.5,
        1e308,
        1e-308,
    ),
    *(
        "",
        "0",
        "a",
        "..",
        "../../etc/passwd",
        "/etc/passwd",
        "os.system",
        "inf",
        "nan",
        "\0",
        "x" * 10_000,
        "é",
        "<f8",
        "O",
    ),
    *(
        [],
        {},
        [[]],
        [0],
        ["a"],
        {"a": 0},
        {"given": "x"},
        {"array": [1, 2], "dtype": "<i8"},
        {"array": [0], "dtype": "O"},
    ),
    *({"number": "nan"}, {"table": "the system"}, {"dict": {}}, {"strategy": {"name": "guarded", "options": {}}}),
)
FORBIDDEN = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "socket.connect",
    "pickle.find_class",
    "ctypes.dlopen",
)


def mutated(value, draw):
    """A JSON value with one to three of its parts changed."""
    value = json.loads(json.dumps(value))
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        places = list(_places(value))
        if not places:
            return value
        container, key = draw.choice(places)
        kind = draw.random()
        if kind < 0.15:
            del container[key]
        elif kind < 0.25 and isinstance(container, list):
            container.insert(key, container[key])
        elif kind < 0.4 and type(container[key]) in (int, float):
            container[key] += draw.choice((-1, 1, 1000, -1000))
        else:
            container[key] = json.loads(json.dumps(draw.choice(VALUES)))
    return value


def _places(value, depth=0):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield value, key
        if depth < 12:
            yield from _places(part, depth + 1)


def sealed(value):
    """The bytes of a JSON file with its digest, whatever the value is."""
    value = {key: part for key, part in value.items() if key != "digest"}
    return canonical({**value, "digest": digest_of(value)})


def change_json(path, file, draw):
    """Mutate a JSON file."""
    (path / file).write_bytes(sealed(mutated(json.loads((path / file).read_bytes()), draw)))


def batches_of(path, run):
    """The links of a log and their bytes."""
    found = read_log(path, run)
    return [(link, (path / link.file).read_bytes()[link.offset : link.end]) for link in found.links]


def write_log(path, run, batches):
    """Write (file, rows, bytes), with a chain over them that is right."""
    digest, files, lines = first_digest(run), {}, []
    for number, (file, rows, data) in enumerate(batches, 1):
        files.setdefault(file, b"")
        link = Link(number, file, len(files[file]), len(data), rows, "")
        digest = next_digest(digest, link.fields, [data])
        lines.append(dataclasses.replace(link, digest=digest).line)
        files[file] += data
    for file, data in files.items():
        (path / file).write_bytes(data)
    (path / CHAIN).write_bytes(b"".join(lines))


def change_bytes(path, draw):
    """Change bytes of a batch, under a right chain: what Arrow's decoder is given."""
    run = json.loads((path / "manifest.json").read_bytes())["run"]
    batches = [(link.file, link.rows, data) for link, data in batches_of(path, run)]
    i = draw.randrange(len(batches))
    file, rows, data = batches[i]
    out = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        place = draw.randrange(len(out))
        out[place] = draw.choice((0, 0xFF, 0x7F, 0x80, out[place] ^ (1 << draw.randrange(8)), draw.randrange(256)))
    if draw.random() < 0.1:
        rows = draw.choice((0, rows + 1, 2**20, 9_999_999))
    if draw.random() < 0.1:
        del out[draw.randrange(len(out)) :]
    batches[i] = file, rows, bytes(out) or b"\0"
    write_log(path, run, batches)


def change_rows(path, draw):
    """Change values of a batch of the log, and encode it again."""
    run = json.loads((path / "manifest.json").read_bytes())["run"]
    batches = batches_of(path, run)
    which = [i for i, (link, _) in enumerate(batches) if link.rows and link.file != NAMES_FILE]
    if not which:
        return change_bytes(path, draw)
    i = draw.choice(which)
    columns = {name: column.copy() for name, column in _columns(path, run, i, batches).items()}
    for _ in range(draw.choice((1, 1, 2, 5))):
        name = draw.choice(list(columns))
        info = np.iinfo(columns[name].dtype) if columns[name].dtype.kind in "iu" else None
        values = (info.min, info.max, 0, 1, 3) if info else (np.nan, np.inf, -np.inf, 0.0, 1e308)
        value = draw.choice((*values, int(columns["state"].max()) + 1 if info else 0.5))
        columns[name][draw.randrange(len(columns[name]))] = min(max(value, info.min), info.max) if info else value
    batch = pa.record_batch([pa.array(columns[field.name], field.type) for field in LOG], schema=LOG)
    return _put_batch(path, run, batches, i, batch)


def _columns(path, run, i, batches):
    link = batches[i][0]
    begin = sum(one.rows for one, _ in batches[:i] if one.file != NAMES_FILE)
    return next(iter(read_log(path, run).batches(begin, begin + link.rows)))


def change_names(path, draw):
    """Change rows of states.arrow, and encode them again; of runs without that file, of the log."""
    run = json.loads((path / "manifest.json").read_bytes())["run"]
    batches = batches_of(path, run)
    which = [i for i, (link, _) in enumerate(batches) if link.file == NAMES_FILE]
    if not which:
        return change_rows(path, draw)
    i = draw.choice(which)
    before = sum(batches[j][0].rows for j in which if j < i)
    rows = [name._asdict() for name in read_log(path, run).names()][before : before + batches[i][0].rows]
    for _ in range(draw.choice((1, 1, 2))):
        row = draw.choice(rows)
        field = draw.choice(("event", "kind", "index", "key", "observation", "actions"))
        row[field] = draw.choice(
            {
                "event": (-1, 0, 2**62, row["event"] + 1),
                "kind": ("state", "action", "offer", "", "x"),
                "index": (-1, 0, 2**62, row["index"] + 1),
                "key": (
                    "",
                    "{}",
                    "[",
                    '{"array": ["O", [1], ""]}',
                    '{"float": 1e999}',
                    "9" * 5000,
                    "[" * 3000,
                    '"\\ud800"',
                ),
                "observation": ("", "\0", "x" * 100_000),
                "actions": (None, (), (-1,), (2**31 - 1,), (0, 0), tuple(range(1000))),
            }[field]
        )
    arrays = [pa.array([row[field.name] for row in rows], field.type) for field in NAMES]
    return _put_batch(path, run, batches, i, pa.record_batch(arrays, schema=NAMES))


def _put_batch(path, run, batches, i, batch):
    data = bytes(encoded(batch, with_schema=batches[i][0].offset == 0))
    out = [(link.file, link.rows, own) for link, own in batches]
    out[i] = (out[i][0], batch.num_rows, data)
    write_log(path, run, out)


def change_chain(path, draw):
    """Change fields of the links, with checks and digests that are right."""
    run = json.loads((path / "manifest.json").read_bytes())["run"]
    batches = [(link.file, link.rows, data) for link, data in batches_of(path, run)]
    for _ in range(draw.choice((1, 2))):
        i, kind = draw.randrange(len(batches)), draw.random()
        file, rows, data = batches[i]
        if kind < 0.3:
            batches[i] = file, draw.choice((0, 1, 2**20, 2**20 + 1, 9_999_999)), data
        elif kind < 0.6:
            del batches[i]
        elif kind < 0.8:
            batches.insert(draw.randrange(len(batches) + 1), batches[i])
        else:
            batches[i] = (
                draw.choice((NAMES_FILE, "log/000001.arrow", "log/000002.arrow", "log/999999.arrow")),
                rows,
                data,
            )
        if not batches:
            break
    write_log(path, run, batches)


CHANGES = {
    "manifest": lambda path, draw: change_json(path, "manifest.json", draw),
    "system.json": lambda path, draw: change_json(path, "system.json", draw),
    "data.json": lambda path, draw: change_json(path, "data.json", draw),
    "checkpoint": lambda path, draw: change_json(path, draw.choice(_checkpoints(path)), draw),
    "certificate": lambda path, draw: change_json(path, "certificate.json", draw),
    "bytes of batches": change_bytes,
    "rows of the log": change_rows,
    "names": change_names,
    "links": change_chain,
}
OFTEN = {"bytes of batches": 3, "manifest": 3, "names": 2}


def _checkpoints(path):
    return [str(file.relative_to(path)) for file in sorted((path / "checkpoint").glob("*.json"))]


@cache
def possible(name):
    """The changes that a run has files for."""
    path = original(name) / "run"
    missing = {change for change in _FILES if not (path / _FILES[change]).exists()}
    missing |= set() if _checkpoints(path) else {"checkpoint"}
    return [change for change in CHANGES for _ in range(OFTEN.get(change, 1)) if change not in missing]


_FILES = {"system.json": "system.json", "data.json": "data.json", "certificate": "certificate.json"}


def use(kind, path, steps, resume):
    """Open a run, read all of it, and perhaps go on for a few steps."""
    run = OpenRun.read(path)
    check_undamaged(run)
    _ = run.totals, run.seed, run.is_table, run.breaks()
    for number in range(min(run.names.num_states, 100)):
        run.names.key(number)
    if resume:
        system = kind.make(path.parent / "journal")
        own = {} if isinstance(system, gosprl.TabularMDP) else {"system": system}
        gosprl.resume(path, **own, **kind.functions, max_steps=steps + 10)


class TooLong(BaseException):
    """A case takes too long."""


def _too_long(*_):
    raise TooLong


class Watch:
    """Notes what a process does beside reading and writing below a directory."""

    def __init__(self, allowed):
        self._allowed, self.on, self.seen = os.fspath(allowed), False, []
        sys.addaudithook(self._hear)

    def _hear(self, event, args):
        if not self.on:
            return
        if event == "open" and isinstance(args[0], (str, bytes, os.PathLike)) and self._writes(args):
            path = self._full(args[0])
            if not path.startswith(self._allowed) and not _from_cache():
                self.seen.append(f"opens {path} for writing")
        elif event in ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.symlink", "os.link"):
            outside = isinstance(args[0], (str, os.PathLike)) and not self._full(args[0]).startswith(self._allowed)
            if outside and not _from_cache():
                self.seen.append(f"{event} {args}")
        elif (event == "import" or event.startswith(FORBIDDEN)) and not _from_cache():
            self.seen.append(f"{event} {args!r:.100}")

    def _full(self, name):
        """A path; a relative one is that of a directory that is held open, since nothing is in the current one."""
        return os.path.abspath(os.path.join(self._allowed, "run", os.fsdecode(name)))

    @staticmethod
    def _writes(args):
        mode, flags = args[1], args[2] or 0
        return any(c in (mode or "") for c in "wax+") or flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)


def _from_cache():
    """Whether this is numba, which loads a kernel of ours from its cache, or stores it there."""
    frame = sys._getframe()
    while frame is not None:
        if "/numba/" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


@cache
def watch(folder):
    """The hook of this process, for the copies of one run; limits on memory are set, too."""
    use(*_case(folder), True)  # imports and compiles what honest runs need
    "".encode("utf-32-be")  # a codec is a module, and keys may need this one
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, _too_long)
    elsewhere(folder).mkdir()
    os.chdir(elsewhere(folder))
    return Watch(folder)


def elsewhere(folder):
    """The current directory while a run is used, which stays empty."""
    return folder / f"elsewhere-{os.getpid()}"


def _case(folder):
    name = next(name for name in RUNS if original(name) == folder)
    path = folder / "mutated"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(folder / "run", path)
    return RUNS[name][0], path, 10**6


def change_and_use(name, number, change):
    """One case: how it ended, and what is wrong."""
    draw, folder = random.Random(f"{name} {number} {change}"), original(name)
    watched, (kind, path, _) = watch(folder), _case(folder)
    steps, resume = len(contents(path)["log/000001.arrow"]) // 2, draw.random() < 0.3
    CHANGES[change](path, draw)
    watched.seen.clear()
    signal.alarm(SECONDS)
    watched.on = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            use(kind, path, steps, resume)
        ended, wrong = "accepted", ""
    except GosprlError:
        ended, wrong = "refused", ""
    except BaseException as error:
        ended, wrong = "problem", f"{type(error).__name__}: {error!s:.300} at {_where(error)}"
    finally:
        watched.on = False
        signal.alarm(0)
    written = [f"writes {entry.name} to the current directory" for entry in os.scandir(elsewhere(folder))]
    return ended, "; ".join([wrong, *watched.seen, *written]).strip("; ")


def _where(error):
    frames, at = [], error.__traceback__
    while at is not None:
        frames.append(f"{Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}")
        at = at.tb_next
    return " ".join(frames[-4:])


def mutate(job):
    """A number of cases: (run, Counter of what happened by change, problems)."""
    name, begin, end = job
    done, problems = Counter(), []
    for number in range(begin, end):
        change = possible(name)[number % len(possible(name))]
        ended, wrong = change_and_use(name, number, change)
        done[f"{change}: {ended}"] += 1
        if wrong:
            problems.append(f"{name}, case {number}, {change}: {wrong}")
    return name, dict(done), problems


def all_mutated(mutations, names, workers):
    """The outcomes of so many mutations, spread over these runs; a process that dies is a problem of its piece."""
    out = []
    for name in names:  # limits and hooks are for one run
        with ProcessPoolExecutor(workers) as pool:
            waiting = [(job, pool.submit(mutate, job)) for job in jobs(mutations, names, CHUNK) if job[0] == name]
            for job, answer in waiting:
                try:
                    out.append(answer.result())
                except Exception as error:
                    out.append((name, {}, [f"{job}: the process ended: {error!r}"]))
    return out


def mutation_table(done):
    """The lines of the table of mutations."""
    seen = sum((Counter(outcome[1]) for outcome in done), Counter())
    lines = ["| changed, and sealed again | cases | refused | accepted | problems |", "|---|---|---|---|---|"]
    for change in CHANGES:
        refused, accepted = seen[f"{change}: refused"], seen[f"{change}: accepted"]
        found = sum(f", {change}: " in problem for outcome in done for problem in outcome[2])
        cases = refused + accepted + seen[f"{change}: problem"]
        lines.append(f"| {change} | {cases:,} | {refused:,} | {accepted:,} | {found} |")
    return lines
