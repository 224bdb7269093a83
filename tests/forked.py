"""`steadyeye` typed in a folder, in a process of its own that has the imports behind it.

A process that imports torch, scipy and scikit-learn spends seconds before it does anything. One
server a test session imports the packages of others, and nothing of ours, and every command is a
fork of it: its own arguments, folder, environment, output, signals and exit code. Commands whose
start is itself what is tested are started with `test_runs.command`.
"""

import atexit
import fcntl
import gc
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import traceback
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path

PACKAGES = (
    "av",
    "cv2",
    "efficientnet_lite_pytorch",
    "jinja2",
    "numba",
    "pandas",
    "pyarrow.parquet",
    "rich.console",
    "scipy.stats",
    "simplejpeg",
    "sklearn.cluster",
    "torch.export",
    "typer.main",
    "yaml",
)
_server = None


class Command:
    """A command that runs; as `subprocess.Popen`, as far as the tests ask.

    `env`: added to what the tests have; None takes a name away.
    """

    def __init__(self, *words, cwd=None, env=None, files=None):
        self.files = files or [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115
        self.returncode = None
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(_address())
        together = {**os.environ, **(env or {})}
        surroundings = {name: value for name, value in together.items() if value is not None}
        asked = {"words": [*map(str, words)], "cwd": str(cwd or Path.cwd()), "env": surroundings}
        fds = [each.fileno() for each in self.files]
        socket.send_fds(self.socket, [b"fds"], fds)
        self.reader = self.socket.makefile("rw")
        self.reader.write(json.dumps(asked) + "\n")
        self.reader.flush()
        self.pid = int(self.reader.readline())

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def poll(self):
        if select.select([self.socket], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self):
        if self.returncode is None:
            self.returncode = int(self.reader.readline())
            self.reader.close()
            self.socket.close()
        return self.returncode

    def communicate(self):
        """What it wrote to stdout and to stderr, when it is over."""
        self.wait()
        said = []
        for each in self.files:
            each.seek(0)
            said.append(each.read().decode())
            each.close()
        return tuple(said)


def steadyeye(*words, cwd=None, env=None, check=False):
    """A command that is over, as `subprocess.run` has it."""
    running = Command(*words, cwd=cwd, env=env)
    stdout, stderr = running.communicate()
    done = subprocess.CompletedProcess(words, running.returncode, stdout, stderr)
    if check:
        assert not done.returncode, stderr
    return done


def on_terminal(columns, *words, cwd=None):
    """A command on a terminal of so many columns: its exit code and what it wrote there."""
    main, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    # pytest's workers have COLUMNS, which would stand above the terminal's own width
    env = {"TERM": "xterm-256color", "COLUMNS": None, "NO_COLOR": None}
    said = bytearray()
    reading = threading.Thread(target=_read, args=(main, said))
    reading.start()
    with os.fdopen(terminal, "wb", buffering=0) as files:
        running = Command(*words, cwd=cwd, env=env, files=[files, files])
        code = running.wait()
    # the reader ends when nobody has the terminal open any more
    reading.join()
    os.close(main)
    return code, said.decode()


def _read(main, said):
    with suppress(OSError):
        while read := os.read(main, 65536):
            said += read


def _address():
    global _server  # noqa: PLW0603
    if _server is None:
        folder = tempfile.mkdtemp(prefix="steadyeye-")
        address = f"{folder}/socket"
        words = [sys.executable, __file__, address]
        how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
        running = subprocess.Popen(words, cwd=folder, **how)
        assert running.stdout.readline() == b"ready\n"
        _server = address, running
        atexit.register(_stop)
    return _server[0]


def _stop():
    # without its input it ends
    address, running = _server
    running.stdin.close()
    running.wait()
    Path(address).unlink(missing_ok=True)
    Path(address).parent.rmdir()


def serve(address):
    """Forks a command for each connection until the input ends."""
    for name in PACKAGES:
        # a command that needs one which is not there says so itself
        with suppress(ImportError):
            import_module(name)
    import numba

    numba.njit(lambda x: x)(0)  # what numba sets up at its first call
    # or the first collection of a command would copy all that was imported
    gc.collect()
    gc.freeze()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        ready = select.select([listening, sys.stdin], [], [])[0]
        if sys.stdin in ready:
            return
        connection, _ = listening.accept()
        if not _fork():
            listening.close()
            _keep(connection)
            os._exit(0)
        connection.close()
        while _over():
            pass


def _fork():
    with warnings.catch_warnings():
        # the threads of BLAS, which looks after its own at a fork
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _over():
    try:
        return os.waitpid(-1, os.WNOHANG)[0]
    except ChildProcessError:
        return 0


def _keep(connection):
    """Begins the command, tells its number and, when it is over, its exit code."""
    _, fds, _, _ = socket.recv_fds(connection, 3, 2)
    stream = connection.makefile("rw")
    asked = json.loads(stream.readline())
    pid = _fork()
    if not pid:
        connection.close()
        _begin(asked, fds)
        return
    stream.write(f"{pid}\n")
    stream.flush()
    _, status = os.waitpid(pid, 0)
    stream.write(f"{os.waitstatus_to_exitcode(status)}\n")
    stream.flush()


def _begin(asked, fds):
    for number, fd in enumerate((os.open(os.devnull, os.O_RDONLY), *fds)):
        os.dup2(fd, number)
        os.close(fd)
    # as at a terminal, though the tests may have been started where an interrupt is ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    others = [path for path in sys.path[1:] if path not in inherited]
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    own = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    # as `python -m steadyeye` has it
    sys.path[:] = [asked["cwd"], *own, *others]
    sys.argv = ["steadyeye", *asked["words"]]
    code = 0
    try:
        runpy.run_module("steadyeye", run_name="__main__", alter_sys=True)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    # threads end and what is to be done at the end is done, but no module is taken down
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
