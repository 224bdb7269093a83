"""Runs every command of two commits on small inputs, and compares all their outputs.

::

    python tools/golden_runs.py --out /tmp/golden main my-branch          # commits or branches
    python tools/golden_runs.py --out /tmp/golden main path/to/checkout   # or a folder, unchanged
    python tools/golden_runs.py --out /tmp/golden main main               # random differences
    python tools/golden_runs.py --out /tmp/golden --read main my-branch   # old runs, newer code

All files are compared, byte by byte: predictions and their seals, CSV, JSON, HTML, pictures, and
the stdout, stderr and exit code of each command (`NN-command.txt`). Only parts that differ between
two runs of one commit are masked: times, private links, free ports (`MASKS`). Code is in `OUT/code`
and runs are in `OUT/work`, so that recorded paths are equal, without git and with one version
number, so that records and their checksums are equal too. Outputs move to `OUT/<commit>` and are
reused by the next comparison; a folder is always run again.

`--read` copies the runs of the first commit and lets both commits read them: report, measure,
compare, gate, resume a finished and a half-finished run, export a review, load a trained model.
Prints the files that differ, with the first difference of a text; the exit status is 1 if there are
any. Data: the packaged video, and `$STEADYEYE_TEST_DATA` if it exists.
"""

import argparse
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from golden_commands import GROUPS, NAMES, READING, SAME
from golden_inputs import write_inputs
from golden_process import ONE_THREAD, begin, fork, import_packages, wait
from golden_review import review_set

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("STEADYEYE_TEST_DATA", ROOT.parent / "shared" / "data"))
REAL = ("{yolox}", "{coco}", "{davis}", "val2014")
"""Placeholders of commands that need real data."""

TIME = rb"\d[\d,]*(\.\d+)?"
MASKS = (
    (re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?"), b"DATE"),
    (re.compile(rb"(http://127\.0\.0\.1:)\d+(/r#)[\w-]+"), rb"\1PORT\2TOKEN"),
    (re.compile(rb"(http://127\.0\.0\.1:)\d+"), rb"\1PORT"),
    (re.compile(rb"<time>[\d:]+</time>"), b"<time>TIME</time>"),
    (re.compile(TIME + rb" (ms|s|min|h)\b"), b"TIME"),
    (re.compile(rb'"(time|seconds|date|measured_at)": ?' + TIME), rb'"\1": TIME'),
    # which of two threads reads the cache first is random
    (re.compile(rb'"hits": \d+'), b'"hits": N'),
    (re.compile(rb'"stages": \{"[^{}]*\}'), b'"stages": TIMES'),
    (re.compile(TIME + rb" (images|frames|samples)/s"), b"RATE"),
)
"""(pattern, replacement) in texts."""
SKIPPED = re.compile(r"\.lock$|\.key$|\.sqlite|\.contents$")
"""Files that are no output, are random, or contain metadata of inputs, such as times."""
TEXT = {".json", ".jsonl", ".csv", ".html", ".md", ".txt", ".seal", ".toml", ".xml"}
METADATA = "Metadata-Version: 2.1\nName: steadyeye\nVersion: 0.0.0\n"


@dataclass(frozen=True)
class Place:
    """The folders: `out` is that of `--out`."""

    out: Path

    @property
    def code(self) -> Path:
        """The source code of the commit, `src/`."""
        return self.out / "code"

    @property
    def work(self) -> Path:
        """Its outputs, one folder per group of commands."""
        return self.out / "work"

    @property
    def inputs(self) -> Path:
        """The inputs, the same for all commits."""
        return self.out / "inputs"

    def environment(self, group: str) -> dict[str, str]:
        """The environment of the commands of a group: one thread, a cache of its own."""
        inherited = {
            name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ
        }
        return {
            **inherited,
            **ONE_THREAD,
            "PYTHONPATH": os.pathsep.join([str(self.code / "src"), str(self.inputs)]),
            "XDG_CACHE_HOME": str(self.out / "cache" / group),
            "HF_HUB_OFFLINE": "1",
            "TERM": "dumb",
            "COLUMNS": "100",
        }


def main() -> int:
    """Runs the commits and compares them; 1 if an output differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="a folder outside the repository")
    parser.add_argument("--groups", default=",".join(GROUPS), help="of commands; default: all")
    parser.add_argument("--read", action="store_true", help="let both read runs of the first")
    parser.add_argument("--again", action="store_true", help="run commits anew, too")
    parser.add_argument("--lanes", type=int, default=2, help="groups that run at a time")
    parser.add_argument("before", help="a commit, a branch or the folder of a checkout")
    parser.add_argument("after")
    arguments = parser.parse_args()
    arguments.groups = arguments.groups.split(",")
    if unknown := set(arguments.groups) - set(GROUPS):
        parser.error(f"no group '{min(unknown)}'; there are {', '.join(GROUPS)}")
    place = Place(arguments.out.resolve())
    place.out.mkdir(parents=True, exist_ok=True)
    if not place.inputs.exists():
        import_packages()
        data = DATA if DATA.is_dir() else None
        # in a separate process, because the parent of forks must have no threads
        if wait(fork(partial(write_inputs, place.inputs, data, ROOT / "examples" / "bikes.json"))):
            sys.exit(f"the inputs could not be written to {place.inputs}")
    names = [name_version(version) for version in (arguments.before, arguments.after)]
    # a branch may change while the first one runs
    if not Path(arguments.before).is_dir():
        arguments.before = names[0]
    if not Path(arguments.after).is_dir():
        arguments.after = names[1]
    folders = [place.out / names[0], place.out / names[1]]
    if names[0] == names[1]:
        folders[1] = place.out / f"{names[0]}-again"
    if arguments.read:
        make(place, arguments, arguments.before, folders[0])
        old = folders[0]
        folders = [old.with_name(f"{old.name}-read-by-{folder.name}") for folder in folders]
        for version, folder in zip((arguments.before, arguments.after), folders, strict=True):
            make(place, arguments, version, folder, old)
    else:
        for version, folder in zip((arguments.before, arguments.after), folders, strict=True):
            make(place, arguments, version, folder)
    different = [line for group in arguments.groups for line in compare(folders, group)]
    different += [line for folder in folders for line in find_unequal(folder)]
    print("\n".join(different) or "equal")
    return int(bool(different))


def name_version(version: str) -> str:
    """The first twelve digits of a commit; of a folder its name."""
    if Path(version).is_dir():
        return f"folder-{Path(version).resolve().name}"
    words = ["git", "rev-parse", "--short=12", f"{version}^{{commit}}"]
    done = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603
    return done.stdout.strip()


def make(
    place: Place,
    arguments: argparse.Namespace,
    version: str,
    folder: Path,
    old: Path | None = None,
) -> None:
    """Runs the requested groups that `folder` lacks; `old`: the runs to read."""
    if arguments.again or Path(version).is_dir():
        shutil.rmtree(folder, ignore_errors=True)
    missing = [group for group in arguments.groups if not (folder / group).exists()]
    if not missing:
        return
    for stale in (place.code, place.work, place.out / "cache"):
        shutil.rmtree(stale, ignore_errors=True)
    unpack(version, place.code)
    if old:
        # symlinks to the inputs are copied as links
        shutil.copytree(old, place.work, symlinks=True)
    began = time.monotonic()
    run_groups(place, missing, arguments.lanes, old is not None)
    folder.mkdir(exist_ok=True)
    for group in missing:
        (place.work / group).rename(folder / group)
    print(f"{folder.name}: {time.monotonic() - began:.0f} s", flush=True)


def unpack(version: str, code: Path) -> None:
    """Writes the sources of a commit or checkout, with a fixed version."""
    code.mkdir(parents=True)
    if Path(version).is_dir():
        shutil.copytree(
            Path(version) / "src", code / "src", ignore=shutil.ignore_patterns("__pycache__")
        )
    else:
        words = ["git", "archive", version, "src"]
        done = subprocess.run(words, cwd=ROOT, check=True, capture_output=True)  # noqa: S603
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(code, filter="data")
    about = code / "src" / "steadyeye-0.0.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(METADATA)
    # as the build of a wheel does: bundling the chart script takes a second per report
    for file in (code / "src").rglob("vega.py"):
        module = runpy.run_path(str(file))
        if not module["FILE"].exists():
            module["FILE"].write_text(module["bundle_vega"]())


def run_groups(place: Place, groups: Sequence[str], lanes: int, reading: bool) -> None:
    """Runs groups in parallel, each in its own process."""
    import_packages()
    running: set[int] = set()
    for group in groups:
        if len(running) == lanes:
            running.remove(wait_for_any())
        running.add(fork(partial(run_group, place, group, reading)))
    while running:
        running.remove(wait_for_any())


def wait_for_any() -> int:
    """The number of a finished process; one that failed ends the comparison."""
    pid, status = os.wait()
    if status:
        sys.exit("a group of commands could not be run")
    return pid


def run_group(place: Place, group: str, reading: bool) -> None:
    """Runs the commands of a group, or those that read its runs, in its own folder."""
    folder = place.work / group
    folder.mkdir(parents=True, exist_ok=True)
    for entry in place.inputs.iterdir():
        if not (folder / entry.name).is_symlink():
            (folder / entry.name).symlink_to(entry)
    lines = (READING if reading else GROUPS).get(group, "").strip().splitlines()
    for number, line in enumerate(lines):
        if any(name in line for name in REAL) and not (place.inputs / "davis").exists():
            continue
        words = shlex.split(line.format_map(NAMES))
        text = RUNNERS.get(words[0], run_command)(folder, words, place.environment(group))
        stage = "read-" if reading else ""
        (folder / f"{stage}{number:02d}-{words[0].strip('!-')}.txt").write_bytes(text)


def run_command(folder: Path, words: Sequence[str], environment: Mapping[str, str]) -> bytes:
    """The output of `steadyeye WORDS`, and its exit code."""
    return run_python(folder, ["", "-m", "steadyeye", *words], environment)


def run_vision(folder: Path, words: Sequence[str], environment: Mapping[str, str]) -> bytes:
    """As `run_command`, with torchvision's operators declared."""
    return run_python(folder, ["", "golden_inputs.py", *words[1:]], environment)


def run_python(folder: Path, words: Sequence[str], environment: Mapping[str, str]) -> bytes:
    """The output of `python WORDS[1:]`, and its exit code."""
    files = (folder / "stdout.log", folder / "stderr.log")
    code = wait(begin(folder, words[1:], environment, files))
    printed = b"--\n".join(file.read_bytes() for file in files)
    for file in files:
        file.unlink()
    return b"%b\n%bexit %d\n" % (shlex.join(words[1:]).encode(), printed, code)


def break_run(folder: Path, words: Sequence[str], environment: Mapping[str, str]) -> bytes:
    """Leaves a run as after a killed process: without the last shard of each cell."""
    removed = []
    for seal in sorted((folder / words[1]).rglob("seal.json")):
        last = max(seal.parent.glob("*.arrow"))
        for file in (seal, last, last.with_suffix(".seal")):
            file.unlink()
        removed.append(f"{last.relative_to(folder)}\n")
    return "".join(removed).encode()


RUNNERS: Mapping[str, Callable[[Path, Sequence[str], Mapping[str, str]], bytes]] = {
    "!python": run_python,
    "!vision": run_vision,
    "!break": break_run,
    "!review": review_set,
}
"""First word of a line → its function, if it is no command of steadyeye."""


def compare(folders: Sequence[Path], group: str) -> Iterator[str]:
    """A line for each file of a group that differs or is in one of the folders only."""
    before, after = (folder / group for folder in folders)
    old, new = list_files(before), list_files(after)
    for name in sorted(old | new):
        if name not in new:
            yield f"only before: {group}/{name}"
        elif name not in old:
            yield f"only after: {group}/{name}"
        else:
            first, second = (read_masked(folder / name) for folder in (before, after))
            if first != second:
                more = first_difference(first, second) if is_text(name) else ""
                yield f"differs: {group}/{name}{more}"


def find_unequal(folder: Path) -> Iterator[str]:
    """A line for each pair of runs in a folder whose predictions differ but should be equal."""
    for pair in SAME:
        # results of `measure` for one of them are beside the cells
        cells = [folder / name / "cells" for name in pair]
        first, second = ({file.relative_to(c): file for file in c.rglob("*.arrow")} for c in cells)
        if sorted(first) != sorted(second):
            yield f"{folder.name}: {' and '.join(pair)} have other shards"
        for name in sorted(first.keys() & second.keys()):
            if first[name].read_bytes() != second[name].read_bytes():
                yield f"{folder.name}: {name} differs in {' and '.join(pair)}"


def list_files(folder: Path) -> set[str]:
    """The files of a folder, as paths in it; those behind links are inputs."""
    names = set()
    for root, _, files in os.walk(folder):
        paths = (Path(root, file) for file in files)
        names |= {str(path.relative_to(folder)) for path in paths if not path.is_symlink()}
    return {name for name in names if not SKIPPED.search(f"/{name}")}


def is_text(name: str) -> bool:
    """Whether a file is written for people or parsers, by the end of its name."""
    return Path(name).suffix in TEXT


def read_masked(path: Path) -> bytes:
    """The content of a file; in a text, parts that differ between runs are masked."""
    content = path.read_bytes()
    if is_text(path.name):
        for pattern, mask in MASKS:
            content = pattern.sub(mask, content)
    return content


def first_difference(first: bytes, second: bytes) -> str:
    """The surroundings of the first place where two texts differ."""
    pairs = enumerate(zip(first, second, strict=False))
    at = next((place for place, (a, b) in pairs if a != b), min(len(first), len(second)))
    parts = [text[max(at - 60, 0) : at + 60].decode(errors="replace") for text in (first, second)]
    return "\n    " + "\n    ".join(repr(part) for part in parts)


if __name__ == "__main__":
    sys.exit(main())
