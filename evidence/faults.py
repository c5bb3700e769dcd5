"""Programs that misbehave: every run goes on or ends with a clear error; nothing invented, lost, or left running.

python -m evidence.faults [--runs 1000]      writes evidence/results/faults.md

`evidence/faulty.py` is a ring of 5 rooms behind the line protocol that, at a random step of each of its processes, does
something else than answer. It keeps a log of its own of the steps that it answered. After each run:

- the transitions counted are those of the log, exactly;
- the run met its need (a crash is an outcome, noise on standard error is none of our business), or ended with an error
  that names the step and what was wrong;
- none of the processes that were started is alive.
"""

import argparse
import random
import re
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import gosprl
from evidence.faulty import ANSWERS, CRASHES, WITHOUT_ANSWER
from gosprl import CRASH, CollectionError
from gosprl.systems import Process

RESULT = Path(__file__).parent / "results" / "faults.md"
PROGRAM = Path(__file__).parent / "faulty.py"
KINDS = (*WITHOUT_ANSWER, *CRASHES, *ANSWERS)
TIMEOUT = 0.3
SILENT = f"no answer within {TIMEOUT} s"
TOO_LONG = "expected a line of at most 1,000,000 bytes, got"
ERRORS = {  # what the error says; the other faults do not end a run
    "garbage": "expected a JSON object, got '%%% no JSON'",
    "number": "expected a JSON object, got '17'",
    "empty line": "expected a JSON object, got ''",
    "half, silence": SILENT,
    "long": TOO_LONG,
    "long, no end": TOO_LONG,
    "binary": "expected UTF-8, got",
    "silence": SILENT,
    "late": SILENT,
    "another question": "id: expected",
    "closed stdout": "but it closed its standard input or output",
    "nan": "expected JSON, which has no NaN",
    "deep": "expected at most 64 levels of lists and objects, got 1001",
    "twice the same name": "expected each name once in an object, got 'observation' twice",
    "no observation": "observation: expected any JSON value",
    "bad reward": "reward: expected a finite number, got null",
    "bad flag": "terminated: expected true or false, got 1",
    "bad offer": r"actions: expected some of \[0, 1\], got 7",
    "error": "the program says: the motor is hot",
    "twice": "expected one line for each request, got another one",
    "twice, later": "expected one line for each request, got another one|id: expected",
}


def run(kind, step, log, seed=0, need=6):
    """A run on the ring with a fault: (result, the error's text or "")."""
    command = [sys.executable, "-S", str(PROGRAM), kind, str(step), str(log)]
    with Process(command, step_timeout=TIMEOUT, log=f"{log}.err") as ring:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that there may well be more states
                return gosprl.collect(ring, need, seed=seed, max_steps=400), ""
        except CollectionError as error:
            return error.result, str(error)


def counted(result):
    """(observation, action, next observation or "crash") -> how often."""
    names = ["crash" if name is CRASH else name for name in result.model.states[:]]
    columns = (array.tolist() for array in result.model.transitions())
    return Counter({(names[s], a, names[s_next]): n for s, a, s_next, n in zip(*columns, strict=True)})


def logged(log, but_the_last=False):
    """The same by the program's own log."""
    lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    if but_the_last:
        del lines[-1]
    return Counter((int(s), int(a), s_next if s_next == "crash" else int(s_next)) for s, a, s_next in lines)


def pids(log):
    """The processes that were started."""
    return [int(pid) for pid in Path(f"{log}.pids").read_text().split()]


def is_alive(pid, seconds=2):
    """Whether a process runs, also after a moment: dying takes one."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return False
        except (ProcessLookupError, FileNotFoundError):
            return False
        time.sleep(0.01)
    return True


def wrong(kind, result, error, log):
    """What is not as it must be, in words."""
    allowed = [logged(log)]
    if kind == "twice, later" and "id: expected" in error:  # it may have made the step, to which it seemed to answer
        allowed.append(logged(log, but_the_last=True))
    if counted(result) not in allowed:
        yield "counts differ from the log"
    if any(map(is_alive, pids(log))):
        yield "a process is left"
    if kind not in ERRORS and (error or not result.met):
        yield f"the run did not go on: {error}"
    if kind in ERRORS and not re.search(rf", step \d+ .*(?:{ERRORS[kind]})", error):
        yield f"the error is not clear: {error!r}"
    if kind in CRASHES and not result.crashes:
        yield "no crash was counted"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    runs, begin = parser.parse_args().runs, time.perf_counter()
    draw, done, steps, problems = random.Random(0), Counter(), Counter(), Counter()
    crashes = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for i in range(runs):
            kind, log = KINDS[i % len(KINDS)], Path(folder) / str(i)
            result, error = run(kind, draw.randint(1, 20), log, seed=i)
            done[kind] += 1
            steps[kind] += result.steps
            crashes[kind] += result.crashes
            for problem in wrong(kind, result, error, log):
                print(f"run {i}, {kind}: {problem}", flush=True)
                problems[kind] += 1
    lines = ["# Programs that misbehave", "", f"`python -m evidence.faults --runs {runs}`", ""]
    lines += ["| fault | runs | steps | crashes counted | the run | problems |", "|---|---|---|---|---|---|"]
    for kind in KINDS:
        ends = "ends with an error" if kind in ERRORS else "goes on"
        lines.append(f"| {kind} | {done[kind]} | {steps[kind]:,} | {crashes[kind]} | {ends} | {problems[kind]} |")
    lines += ["", f"{problems.total()} problems in {runs} runs; {time.perf_counter() - begin:.0f} s."]
    RESULT.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
