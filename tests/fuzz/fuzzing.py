"""Parsers with damaged copies of real files, each case in a process that may crash.

A parser is registered in the list `PARSERS` of a file `parsers_*.py` in this folder. For any bytes
it may return, or raise a `UsageError` of one line that names a file. Another exception, a warning,
a crash of the interpreter, a timeout, and memory over 1 GB are faults.
"""

import faulthandler
import importlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

import mutations

from steadyeye.core.errors import UsageError

MEMORY = 2**30
"""Bytes that a case may add to what the process has."""
SECONDS = 20
"""Time of a processor that a case may take."""
PATIENCE = 180
"""Seconds after which a case that waits for something is ended."""
BATCH = 50
FEW = 8
"""The cases of a parser each of which takes a tenth of a second."""
HERE = Path(__file__).parent
_built: dict[object, Path] = {}
_library = tempfile.TemporaryDirectory(prefix="fuzz-")


@dataclass(frozen=True)
class Parser:
    """Something that reads files.

    `build(folder)` writes the example files there, once. `read(folder)` reads a copy of them, one
    of which is damaged. `files`: which of them are damaged, glob → form (bytes, text, lines, csv,
    json, numbers). `known_faults`: cases that once were faults, (file, bytes): tried in every run.
    `cases`: others that the tests try; each kind of file has one at least.
    """

    name: str
    build: Callable[[Path], object]
    read: Callable[[Path], object]
    files: dict[str, str]
    known_faults: tuple[tuple[str, bytes], ...] = ()
    cases: int = 20


@dataclass(frozen=True)
class Case:
    """One damaged file: its place among the examples, its bytes and what was done to it."""

    number: int
    file: str
    content: bytes
    words: str


@dataclass
class Outcome:
    """How the cases of a parser went; `faults`: (kind, case, text), `peak`: bytes added."""

    parser: str
    cases: int = 0
    refused: int = 0
    accepted: int = 0
    peak: int = 0
    faults: list[tuple[str, str, str]] = field(default_factory=list)

    def count(self, kind):
        """How many faults there are of a kind: traceback, hang or memory."""
        return sum(fault[0] == kind for fault in self.faults)


def find_parsers():
    """All that are registered, by name."""
    names = sorted(path.stem for path in HERE.glob("parsers_*.py"))
    parsers = [parser for name in names for parser in importlib.import_module(name).PARSERS]
    assert len({parser.name for parser in parsers}) == len(parsers)
    return {parser.name: parser for parser in parsers}


def make_case(parser, examples, number):
    """The case of a number: the same whatever was tried before it; kinds of files take turns."""
    glob, form = list(parser.files.items())[number % len(parser.files)]
    files = sorted(path for path in examples.glob(glob) if path.is_file())
    assert files, f"{parser.name}: no example file {glob}"
    random = Random(f"{parser.name} {number}")
    path = random.choice(files)
    content, words = mutations.mutate(path.read_bytes(), form, random)
    file = path.relative_to(examples).as_posix()
    return Case(number, file, content, words)


def try_parser(parser, cases, first=0):
    """The outcome of the known faults and of `cases` made ones from the number `first` on."""
    outcome = Outcome(parser.name)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
        examples = Path(place) / "examples"
        shutil.copytree(_build(parser.build), examples)
        _check_examples(parser, examples, Path(place))
        numbers = [*range(-len(parser.known_faults), 0), *range(first, first + cases)]
        while numbers:
            batch, numbers = numbers[:BATCH], numbers[BATCH:]
            numbers = _try_batch(parser, examples, batch, outcome) + numbers
    return outcome


def _build(build):
    """The folder with the examples of a function, which parsers share that name the same one."""
    key = (build.func, str(build.args)) if isinstance(build, partial) else build
    if key not in _built:
        folder = Path(_library.name) / str(len(_built))
        folder.mkdir()
        build(folder)
        _built[key] = folder
    return _built[key]


def _check_examples(parser, examples, place):
    """The examples themselves are read without any fault."""
    whole = place / "whole"
    shutil.copytree(examples, whole)
    try:
        parser.read(whole)
    except UsageError as error:
        raise AssertionError(f"{parser.name}: the example itself is refused: {error}") from error
    shutil.rmtree(whole)


def _get_case(parser, examples, number):
    if number >= 0:
        return make_case(parser, examples, number)
    file, content = parser.known_faults[number]
    return Case(number, file, content, "kept")


def _try_batch(parser, examples, numbers, outcome):
    """Adds what came of cases to the outcome; the numbers of those that are still to be tried."""
    read, write = os.pipe()
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads at a fork
        pid = os.fork()
    if not pid:
        os.close(read)
        _try_in_child(parser, examples, numbers, write)
    os.close(write)
    left, signs, patient = list(numbers), b"", True
    with os.fdopen(read, "rb", buffering=0) as stream:
        while True:
            patient = bool(select.select([stream], [], [], PATIENCE)[0])
            more = stream.read(65536) if patient else b""
            if not more:
                break
            signs += more
            *lines, signs = signs.split(b"\n")
            for line in lines:
                left.pop(0)
                _add(outcome, *json.loads(line))
    if not patient:
        os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if left:
        hang = not patient or status == -signal.SIGPROF
        fault = ("hang", "no end") if hang else ("traceback", f"the process ended with {status}")
        case = _get_case(parser, examples, left.pop(0))
        _add(outcome, fault[0], _describe(parser, case), fault[1], 0)
    return left


def _add(outcome, kind, case, text, peak):
    outcome.cases += 1
    outcome.peak = max(outcome.peak, peak)
    if kind in ("refused", "accepted"):
        setattr(outcome, kind, getattr(outcome, kind) + 1)
    else:
        outcome.faults.append((kind, case, text))


def _describe(parser, case):
    return f"{parser.name} case {case.number}, {case.file}: {case.words}"


def _try_in_child(parser, examples, numbers, write):
    """Tries cases, a line to the pipe for each; never returns."""
    code = 1
    try:
        if not os.environ.get("FUZZ_SHOW"):
            quiet = os.open(os.devnull, os.O_RDWR)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            faulthandler.disable()
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + 3 * MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with tempfile.TemporaryDirectory(prefix="fuzz-", dir=examples.parent) as place:
            for number in numbers:
                case = _get_case(parser, examples, number)
                folder = Path(place) / "case"
                shutil.copytree(examples, folder)
                (folder / case.file).write_bytes(case.content)
                kind, text, peak = _try_case(parser, folder)
                shutil.rmtree(folder)
                line = json.dumps([kind, _describe(parser, case), text, peak])
                os.write(write, line.encode() + b"\n")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _try_case(parser, folder):
    """What came of it, its text, and the memory that it took."""
    names = {folder.name, *(path.name for path in folder.rglob("*"))}
    before = _measure(reset=True)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for kind in (RuntimeWarning, UserWarning):
                warnings.simplefilter("error", kind)
            parser.read(folder)
        kind, text = "accepted", ""
    except UsageError as error:
        kind, text = _judge(str(error), names)
    except MemoryError:
        kind, text = "memory", _last_lines()
    except BaseException:
        kind, text = "traceback", _last_lines()
    signal.setitimer(signal.ITIMER_PROF, 0)
    peak = max(0, _measure() - before)
    if peak > MEMORY and kind in ("refused", "accepted"):
        kind, text = "memory", f"{peak / 2**20:.0f} MB"
    return kind, text, peak


def _judge(text, names):
    """Whether a refusal is one line that can be printed and names a file."""
    with suppress(UnicodeEncodeError):
        text.encode()
        if len(text.splitlines()) != 1 or len(text) > 2_000:
            return "traceback", f"not one short line: {text[:500]!r}"
        if not any(name in text for name in names):
            return "traceback", f"names no file: {text[:500]!r}"
        return "refused", text
    return "traceback", f"cannot be printed: {text[:500]!r}"


def _last_lines():
    """The error that is raised, and where: the last lines of our own code and the very last."""
    error = sys.exc_info()[1]
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [frame for frame in frames if "/src/steadyeye/" in frame.filename] or frames
    places = [*own_frames[-3:], *(frames[-1:] if frames[-1] is not own_frames[-1] else ())]
    lines = [f"File {f.filename}:{f.lineno} {f.name}: {f.line}" for f in places]
    return "\n".join([*lines, f"{type(error).__name__}: {str(error)[:300]!r}"])


def _measure(reset=False):
    """The most memory that the process had, since the last time that this was set back."""
    if reset:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024


def main(words):
    """Tries parsers, all or those named, prints the table and the faults; 1 where there are any.

    `[--cases N] [--first N] [--write PAGE.md] [parser …]`
    """
    import argparse

    reading = argparse.ArgumentParser(description=main.__doc__)
    reading.add_argument("parsers", nargs="*")
    reading.add_argument("--cases", type=int, default=1_000)
    reading.add_argument("--first", type=int, default=0)
    reading.add_argument("--write", type=Path)
    options = reading.parse_args(words)
    parsers = find_parsers()
    outcomes = []
    for name in options.parsers or parsers:
        start = time.monotonic()
        outcomes.append(try_parser(parsers[name], options.cases, options.first))
        sys.stdout.write(f"{name}: {time.monotonic() - start:.0f} s\n")
        sys.stdout.write("".join(_write_faults(outcomes[-1])))
        sys.stdout.flush()
    table = write_table(outcomes)
    sys.stdout.write(table)
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        start, end = "<!-- fuzz -->\n", "<!-- end of fuzz -->"
        head, rest = page.split(start)
        options.write.write_text(f"{head}{start}\n{table}\n{end}{rest.split(end)[1]}", "utf-8")
    return int(any(outcome.faults for outcome in outcomes))


def _write_faults(outcome):
    """The faults, those that end in the same place once, with how many there are."""
    places = {}
    for kind, case, text in outcome.faults:
        last = [line for line in text.splitlines() if line.strip().startswith("File ")]
        places.setdefault((kind, *(last[-1:] or [text[:40]])), []).append((case, text))
    for (kind, _), cases in places.items():
        yield f"  {kind}, {len(cases)} times, first {cases[0][0]}\n"
        yield "".join(f"    {line}\n" for line in cases[0][1].splitlines())


def write_table(outcomes):
    """The Markdown table of outcomes."""
    head = ("parser", "refused", "accepted", "faults", "peak MB")
    rows = [
        (o.parser, o.refused, o.accepted, len(o.faults), round(o.peak / 2**20)) for o in outcomes
    ]
    if len(rows) > 1:
        columns = [*zip(*rows, strict=True)]
        rows.append(("all", *map(sum, columns[1:-1]), max(columns[-1])))
    lines = [
        f"| {' | '.join(f'{cell:,}' if isinstance(cell, int) else cell for cell in row)} |"
        for row in (head, *rows)
    ]
    lines.insert(1, f"|---{'|--:' * (len(head) - 1)}|")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    # parsers import the module by its name
    from fuzzing import main as run

    sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "fixtures")]
    sys.exit(run(sys.argv[1:]))
