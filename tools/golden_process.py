"""Commands as forks of a process with the imports done; see `golden_runs.py`.

A command that imports torch, scipy and pandas takes seconds to start. Third-party packages are
imported once, and none of ours; each command is then a fork with its own folder, environment,
output and exit code. The parent must have no threads: groups are processes.
"""

import gc
import os
import runpy
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
"""Settings that the packages read at import."""
PACKAGES = (
    "av",
    "cv2",
    "efficientnet_lite_pytorch",
    "fastapi",
    "jinja2",
    "numba",
    "onnxruntime",
    "pandas",
    "pyarrow.parquet",
    "rich.console",
    "scipy.stats",
    "simplejpeg",
    "sklearn.cluster",
    "sqlalchemy",
    "torch.export",
    "typer.main",
    "uvicorn",
    "yaml",
)


def import_packages() -> None:
    """Imports what most commands import, with one thread each."""
    os.environ.update(ONE_THREAD)
    for name in PACKAGES:
        # a command that needs a missing package reports it
        with suppress(ImportError):
            import_module(name)
    # otherwise the first collection of a command would copy all imported objects
    gc.collect()
    gc.freeze()


def fork(work: Callable[[], None]) -> int:
    """Starts a process that does `work` and ends with 0, or 1 and a traceback; its number."""
    with warnings.catch_warnings():
        # BLAS handles its threads at a fork
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        with suppress(ImportError):
            # at exit, threads of executors are joined
            import threading

            threading._shutdown()
        os._exit(code)


def wait(pid: int) -> int:
    """The exit code of a process after its end; minus the signal if a signal ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def begin(
    folder: Path, words: Sequence[str], environment: Mapping[str, str], files: tuple[Path, Path]
) -> int:
    """Starts a process that runs `python WORDS` in `folder`; returns its number.

    `words`: as for Python, `-m module …` or `script.py …`. `files`: of stdout and stderr.
    """

    def work() -> None:
        how = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        for number, file in enumerate((Path(os.devnull), *files)):
            descriptor = os.open(file, os.O_RDONLY if number == 0 else how)
            os.dup2(descriptor, number)
            os.close(descriptor)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        # as in Python: the folder of the script or the current one, then the path
        sys.path[0] = str(folder)
        sys.path[1:1] = environment["PYTHONPATH"].split(os.pathsep)
        if words[0] == "-m":
            sys.argv = list(words[1:])
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = list(words)
            runpy.run_path(str(folder / words[0]), run_name="__main__")

    return fork(work)
