"""Processes of Python that need not begin cold: `run` and `Popen`, as of `subprocess`.

Starting Python, importing what gosprl needs and loading its kernels takes a second or two, and many tests are about
processes: what they print, how they exit, what signals do to them. One process has all of that in memory and forks a
child for each command: a process of its own, with its own number, files, directory and environment. Nothing of the
command line itself is imported before the fork. Tests of what happens before that (imports, their order and weight,
compilation, settings of the interpreter) start a process with `subprocess`.
"""

import atexit
import contextlib
import gc
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

PIPE, STDOUT, DEVNULL = subprocess.PIPE, subprocess.STDOUT, subprocess.DEVNULL
_forks = None


# in the process of the tests


def run(command, *, input=None, capture_output=False, timeout=None, check=False, **options):
    """As `subprocess.run`, of `[sys.executable, "-c", code, ...]`, "-m" with a module, or a script."""
    if capture_output:
        options |= {"stdout": PIPE, "stderr": PIPE}
    if input is not None:
        options["stdin"] = PIPE
    with Popen(command, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


class Popen:
    """As `subprocess.Popen`: what tests use of it."""

    def __init__(
        self,
        command,
        *,
        stdin=None,
        stdout=None,
        stderr=None,
        text=False,
        encoding=None,
        env=None,
        cwd=None,
        start_new_session=False,
    ):
        program, *self.args = map(str, command)
        assert program == sys.executable
        self.returncode, theirs, ours = None, [], []
        for fd, given in enumerate((stdin, stdout, stderr)):
            mine = None
            if given == PIPE:
                reader, writer = os.pipe()
                one, mine = (reader, writer) if fd == 0 else (writer, reader)
            elif given == DEVNULL:
                one = os.open(os.devnull, os.O_RDWR)
            elif given == STDOUT:
                one = os.dup(theirs[1])
            else:
                one = os.dup(fd if given is None else given if isinstance(given, int) else given.fileno())
            theirs.append(one)
            ours.append(None if mine is None else os.fdopen(mine, "wb" if fd == 0 else "rb"))
        if text or encoding:
            ours = [file and io.TextIOWrapper(file, encoding or "utf-8", write_through=True) for file in ours]
        self.stdin, self.stdout, self.stderr = ours
        reader, writer = os.pipe()
        told = {"args": self.args, "env": dict(os.environ if env is None else env), "cwd": str(cwd or os.getcwd())}
        data = json.dumps({**told, "session": start_new_session}).encode()
        socket.send_fds(_the_forks(), [len(data).to_bytes(4, "big")], [*theirs, writer])
        _the_forks().sendall(data)
        for fd in (*theirs, writer):
            os.close(fd)
        self._said = os.fdopen(reader, "rb")
        self.pid = int(self._said.readline())

    def poll(self):
        """The exit status, if it has ended."""
        if self.returncode is None and select.select([self._said], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout=None):
        """Wait until it ends: the exit status."""
        if self.returncode is None:
            if not select.select([self._said], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout)
            with self._said:
                self.returncode = os.waitstatus_to_exitcode(int(self._said.readline()))
        return self.returncode

    def communicate(self, input=None, timeout=None):
        """Send `input`, read to the end, and wait."""
        read, threads = {}, []
        for file in (self.stdout, self.stderr):
            if file is not None and not file.closed:
                threads.append(threading.Thread(target=_read, args=(file, read), daemon=True))
                threads[-1].start()
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError), self.stdin:
                self.stdin.write(input or ("" if isinstance(self.stdin, io.TextIOBase) else b""))
        self.wait(timeout)
        for thread in threads:
            thread.join(timeout)
            if thread.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout)
        return read.get(self.stdout), read.get(self.stderr)

    def send_signal(self, number):
        """Send a signal, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self):
        """`kill -9`."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.wait()
        for file in (self.stdin, self.stdout, self.stderr):
            if file is not None:
                with contextlib.suppress(BrokenPipeError):
                    file.close()


def _read(file, read):
    with file:
        read[file] = file.read()


def _the_forks():
    """The socket to the process that forks, which is started when it is first needed."""
    global _forks
    if _forks is None:
        _forks, theirs = socket.socketpair()
        command = [sys.executable, __file__, str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=DEVNULL)
        theirs.close()
        atexit.register(_end, _forks, process)
    return _forks


def _end(forks, process):
    forks.close()
    process.wait()


# in the process that forks


def _warm():
    """Import what commands need, and load the kernels, which starts no threads."""
    import tempfile

    import gymnasium
    import typer
    from rich import progress, status, table  # noqa: F401
    from typer.testing import CliRunner

    import gosprl
    import gosprl.runs.resuming
    import gosprl.serving

    river = gosprl.envs.make("riverswim6")
    with tempfile.TemporaryDirectory() as folder:
        gosprl.collect(river, 1, seed=0, max_steps=30, out=Path(folder) / "run")
        gosprl.collect(gymnasium.make("FrozenLake-v1"), 1, seed=0, max_steps=30)
    app = typer.Typer(rich_markup_mode="markdown")
    app.command()(lambda: None)
    for arguments in ([], ["--help"], ["--nothing"]):  # which imports what it takes to parse, to help, and to complain
        CliRunner().invoke(app, arguments)


def _forked(control):
    """Fork a process for each request; returns the request in that process only."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waiting = {}  # process -> where to tell its status
    while True:
        ready = select.select([control, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
            while waiting:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                os.write(waiting[pid], b"%d\n" % status)
                os.close(waiting.pop(pid))
        if control not in ready:
            continue
        size, fds, *_ = socket.recv_fds(control, 4, 4)
        if not size:
            os._exit(0)
        data, length = b"", int.from_bytes(size, "big")
        while len(data) < length:
            data += control.recv(length - len(data))
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for target, fd in enumerate(fds[:3]):
                os.dup2(fd, target)
            for fd in (*fds, *waiting.values(), woken, wake):
                os.close(fd)
            control.close()
            return json.loads(data)
        for fd in fds[:3]:
            os.close(fd)
        waiting[pid] = fds[3]
        os.write(fds[3], b"%d\n" % pid)


def _execute(first, *rest):
    """Do what Python does with these arguments."""
    if first == "-c":
        code, *rest = rest
        sys.argv = ["-c", *rest]
        sys.path.insert(0, "")
        main = sys.modules["__main__"] = type(sys)("__main__")
        exec(compile(code, "<string>", "exec"), main.__dict__)
    elif first == "-m":
        module, *rest = rest
        sys.argv = ["-m", *rest]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [first, *rest]
        sys.path.insert(0, str(Path(first).parent))
        runpy.run_path(first, run_name="__main__")


def _exit(status):
    """End as Python does, but without clearing the memory, most of which is that of the process that forks."""
    if not (status is None or isinstance(status, int)):
        print(status, file=sys.stderr)
        status = 1
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except BrokenPipeError:
        status = 120
    os._exit((status or 0) & 0xFF)


def _main():
    control = socket.socket(fileno=int(sys.argv[1]))
    sys.path.remove(str(Path(__file__).parent))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal ends the tests, which end this
    _warm()
    gc.collect()
    gc.freeze()
    request = _forked(control)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request["session"]:
        os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    for fd, name in enumerate(("stdin", "stdout", "stderr")):  # new ones: they know what kind of file they are
        file = open(fd, "w" if fd else "r", 1 if fd == 2 or os.isatty(fd) else -1, closefd=False)  # noqa: SIM115
        setattr(sys, name, file)
        setattr(sys, f"__{name}__", file)
    sys.stderr.reconfigure(errors="backslashreplace")
    try:
        _execute(*request["args"])
    except SystemExit as end:
        _exit(end.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        _exit(1)
    _exit(0)


if __name__ == "__main__":
    _main()
