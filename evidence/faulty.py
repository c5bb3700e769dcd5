"""A ring of 5 that speaks the line protocol and, at a given step of each process, does something else.

python evidence/faulty.py KIND STEP LOG

LOG gets a line for each step that was answered, LOG.pids one for each process.
"""

import json
import os
import signal
import subprocess
import sys
import time

SIZE, FOREVER = 5, 60


def put(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def note(*words):
    with open(sys.argv[3], "a") as log:
        print(*words, file=log)


def started(pid):
    with open(f"{sys.argv[3]}.pids", "a") as pids:
        print(pid, file=pids)


def leave_a_child():
    """Exit, while another process keeps standard output open."""
    started(subprocess.Popen(["sleep", str(FOREVER)]).pid)
    sys.exit(3)


def twice_later(line):
    put(line)
    time.sleep(0.01)
    put(line)


WITHOUT_ANSWER = {  # the step is not answered: whether it counts is for us to see
    "garbage": lambda line: put("%%% no JSON\n"),
    "number": lambda line: put("17\n"),
    "empty line": lambda line: put("\n"),
    "half, silence": lambda line: (put(line[:9]), time.sleep(FOREVER)),
    "long": lambda line: put('{"observation":"' + "x" * 10**7 + '"}\n'),
    "long, no end": lambda line: (put("x" * 2 * 10**6), time.sleep(FOREVER)),
    "binary": lambda line: os.write(1, bytes(range(128, 256)) + b"\n"),
    "silence": lambda line: time.sleep(FOREVER),
    "late": lambda line: (time.sleep(FOREVER), put(line)),
    "another question": lambda line: put(line.replace('"id": ', '"id": 1')),
    "closed stdout": lambda line: (os.close(1), time.sleep(FOREVER)),
    "nan": lambda line: put('{"observation":NaN}\n'),
    "deep": lambda line: put('{"observation":' + "[" * 1000 + "]" * 1000 + "}\n"),
    "twice the same name": lambda line: put('{"observation":1,"observation":2}\n'),
    "no observation": lambda line: put('{"reward":1}\n'),
    "bad reward": lambda line: put('{"observation":1,"reward":null}\n'),
    "bad flag": lambda line: put('{"observation":1,"terminated":1}\n'),
    "bad offer": lambda line: put('{"observation":1,"actions":[7]}\n'),
    "error": lambda line: put('{"error":"the motor is hot"}\n'),
}
CRASHES = {
    "exit": lambda line: sys.exit(3),
    "exit 0": lambda line: sys.exit(0),
    "half, exit": lambda line: (put(line[:9]), sys.exit(1)),
    "segmentation fault": lambda line: os.kill(os.getpid(), signal.SIGSEGV),
    "killed": lambda line: os.kill(os.getpid(), signal.SIGKILL),
    "leaves a child": lambda line: leave_a_child(),
}
ANSWERS = {  # the step is answered
    "twice": lambda line: put(line + line),
    "twice, later": twice_later,
    "flood": lambda line: (sys.stderr.write("noise " * 10**6), put(line)),
    "nothing": put,
}


def main():
    fault, when = sys.argv[1], int(sys.argv[2])
    started(os.getpid())
    s = steps = 0
    for request in map(json.loads, sys.stdin):
        kind = request["type"]
        if kind == "close":
            return
        if kind == "hello":
            answer = {"type": "hello", "protocol": 1, "actions": 2}
        elif kind == "reset":
            s = 0
            answer = {"observation": s}
        else:
            before, s, steps = s, (s + (1 if request["action"] else -1)) % SIZE, steps + 1
            answer = {"observation": s}
        line = json.dumps({**answer, "id": request["id"]}) + "\n"
        if kind != "step":
            put(line)
        elif steps != when:
            note(before, request["action"], s)
            put(line)
        elif fault in ANSWERS:
            note(before, request["action"], s)
            ANSWERS[fault](line)
        elif fault in CRASHES:
            note(before, request["action"], "crash")
            CRASHES[fault](line)
        else:
            WITHOUT_ANSWER[fault](line)


if __name__ == "__main__":
    main()
