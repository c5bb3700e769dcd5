"""A real program behind the line protocol: bash and its stack of directories (`pushd`, `popd`), driven through stdin.

    gosprl collect --process "python examples/processes/directories.py" --need 20 --seed 0

Bash does what it is told, and says with `dirs` what its stack is then: that is the observation. At three directories
nothing more is pushed, so that there are finitely many stacks. The first argument, if there is one, names a file for a
log of all steps.
"""

import json
import subprocess
import sys

ACTIONS = ["pushd /", "pushd /usr", "pushd +1", "popd"]
MOST = 3
END = "--end--"


class Bash:
    """A bash that runs one command after the other."""

    def __init__(self):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(["bash", "--norc"], stdin=pipe, stdout=pipe, text=True, bufsize=1, cwd="/")

    def run(self, command):
        """The lines that a command prints."""
        self.process.stdin.write(f"{command} 2>/dev/null; echo {END}\n")
        return list(iter(lambda: self.process.stdout.readline().rstrip("\n"), END))

    def stack(self):
        """The stack of directories, the present one first."""
        return self.run("dirs -l -p")


def offered(stack):
    """The actions that make sense with this stack."""
    more = ACTIONS[:2] if len(stack) < MOST else []
    return more + (ACTIONS[2:] if len(stack) > 1 else [])


def answer(bash, request, log):
    """What to say to a request."""
    kind = request["type"]
    if kind == "hello":
        return {"type": "hello", "protocol": 1, "actions": ACTIONS}
    if kind == "reset":
        bash.run("dirs -c; cd /")
    elif kind == "step":
        before = bash.stack()
        bash.run(request["action"])
        print(json.dumps([before, request["action"], bash.stack()]), file=log, flush=True)
    else:
        return {"error": f"expected hello, reset, step or close, got {kind}"}
    stack = bash.stack()
    return {"observation": stack, "actions": offered(stack)}


def main():
    """Answer one request after the other."""
    bash = Bash()
    with open(sys.argv[1] if len(sys.argv) > 1 else "/dev/null", "w") as log:
        for line in sys.stdin:
            request = json.loads(line)
            if request["type"] == "close":
                break
            print(json.dumps({**answer(bash, request, log), "id": request.get("id")}), flush=True)
    bash.process.stdin.close()
    bash.process.wait()


if __name__ == "__main__":
    main()
