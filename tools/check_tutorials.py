"""Runs the commands of the docs and compares their output with that in the docs.

::

    python tools/check_tutorials.py                          # all pages
    python tools/check_tutorials.py how-to/pm-k.md           # some, and the pages before them
    python tools/check_tutorials.py --update how-to/pm-k.md  # write the output into the pages

A fenced block `console` has commands after `$ `, each with its output; a block `python` is run,
too, and a block `text` right after it has its output. All pages run in one folder of prepared
inputs (`make_inputs`), in the order of their names and of `<!-- after: page.md -->`. Predictions
are cached between runs, together with those of the gallery and of the notebooks.

A line that is `…` alone stands for any number of lines. Output that differs between runs has
markers (`VOLATILE`). Comments right before a block are its options::

    <!-- not run: why -->       its commands are only compared with the command tree
    <!-- ends with: 1 -->        the exit code of its last command
    <!-- needs: test data -->   its page is left out without the folder of real photos
    <!-- same as: page.md -->   it is not run again: that page has the same command and output
    <!-- varies: pattern -->    matches of the pattern's groups are printed as …
    <!-- serves: accept -->     a server: its pages are requested, then it is stopped (`review_all`)
"""

import argparse
import difflib
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "fixtures")]

import forked  # noqa: E402
from tutorial_inputs import make_inputs, review_all  # noqa: E402

PORT = 8000
"""The port of `steadyeye review` if none is named."""

VOLATILE = (
    # progress: name, done/total, rate
    (re.compile(r"^\S.*: [\d,]+/[\d,]+(, .*)?\n", re.MULTILINE), ""),
    (re.compile(r"^\S.*: [\d,]+, .*images/s.*\n", re.MULTILINE), ""),
    # the private link of a reviewer
    (re.compile(r"(http://127\.0\.0\.1:\d+/r#)[\w-]+"), r"\1<token>"),
    (re.compile(r"\b[0-9a-f]{32,64}\b"), "<digest>"),
    (re.compile(r"\b\d+(\.\d+)? s\b(?= of work| in all|\.?$)", re.MULTILINE), "<time> s"),
)
"""Pattern → marker, for output that differs between runs; the folder of the run is `…`."""

FENCE = re.compile(
    r"^(?P<said>(?:<!-- [^\n]* -->\n)*)(?P<indent> *)```(?P<language>\w*)[^\n]*\n"
    r"(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
COMMENT = re.compile(r"<!-- ([\w ]+?)(?:: (.*?))? -->")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    `said`: the comments before it, by their first words. `start`, `end`: the place of its body in
    the text of the page.
    """

    page: str
    language: str
    body: str
    start: int
    end: int
    options: dict[str, str] = field(default_factory=dict)

    @property
    def is_run(self) -> bool:
        """Whether it is run, not only read."""
        return self.language in {"console", "python"} and "not run" not in self.options


@dataclass(frozen=True)
class Command:
    """A command of a block as written, and its expected output."""

    lines: tuple[str, ...]
    output: tuple[str, ...]

    @property
    def text(self) -> str:
        """The command without its prompts."""
        return "\n".join(line[2:] if line[:2] in {"$ ", "> "} else line for line in self.lines)


class OutputError(Exception):
    """A page whose output differs; its text is the difference."""


def list_pages() -> list[str]:
    """The pages with commands, as paths below `docs/`; the README is `../README.md`."""
    pages = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    # notebooks are run when the site is built
    return ["../README.md", *(page for page in pages if not page.startswith("notebooks/"))]


def read_blocks(page: str) -> list[Block]:
    """The fenced blocks of a page."""
    text = (DOCS / page).read_text()
    return [
        Block(
            page,
            match["language"],
            match["body"],
            match.start("body"),
            match.end("body"),
            {key: value or "" for key, value in COMMENT.findall(match["said"])},
        )
        for match in FENCE.finditer(text)
    ]


def read_commands(block: Block) -> list[Command]:
    """The commands of a block `console`."""
    commands: list[tuple[list[str], list[str]]] = []
    for line in block.body.splitlines():
        if line.startswith("$ "):
            commands.append(([line], []))
        elif not commands:
            raise OutputError(f"{block.page}: '{line}' stands before the first '$ '")
        elif not commands[-1][1] and (line.startswith("> ") or commands[-1][0][-1].endswith("\\")):
            commands[-1][0].append(line)
        else:
            commands[-1][1].append(line)
    return [Command(tuple(lines), tuple(output)) for lines, output in commands]


def list_earlier(page: str) -> list[str]:
    """The pages that must run before one, in order."""
    earlier: list[str] = []
    for name in re.findall(r"<!-- (?:after|same as): (\S+) -->", (DOCS / page).read_text()):
        for other in (*list_earlier(name), name):
            if other not in earlier:
                earlier.append(other)
    return earlier


def needs_data(page: str) -> bool:
    """Whether a page, or one before it, needs the test data."""
    pages = (*list_earlier(page), page)
    return any("needs" in block.options for page in pages for block in read_blocks(page))


class Folder:
    """The folder in which the pages are run; a page is run once."""

    def __init__(self, path: Path, data: Path | None, answers: Path) -> None:
        """`data`: the folder of real test data, None if it is missing.

        `answers`: the folder of cached predictions and exports.
        """
        self.path = path.resolve()
        self.pages: set[str] = set()
        self.data = data
        make_inputs(self.path, data)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("STEADYEYE_")}
        inherited.pop("COLUMNS", None)
        self.environment = {
            **inherited,
            "XDG_CACHE_HOME": str(answers),
            "PYTHONPATH": str(ROOT / "src"),
            "TERM": "dumb",
        }

    def run_page(self, page: str, *, update: bool = False) -> None:
        """Runs a page after the pages before it; raises `OutputError` for a difference."""
        for earlier in (*list_earlier(page), page):
            if earlier not in self.pages:
                self.pages.add(earlier)
                self._run_page(earlier, update=update)

    def _run_page(self, page: str, *, update: bool) -> None:
        changes = []
        blocks = read_blocks(page)
        for block, after in zip(blocks, [*blocks[1:], None], strict=False):
            if not block.is_run:
                continue
            if block.language == "console":
                changes.append((block, self._run_console(block)))
            else:
                is_output = after is not None and after.language == "text"
                changes.append((after if is_output else None, self._run_python(block, after)))
        wrong = [(block, body) for block, body in changes if block and block.body != body]
        if wrong and not update:
            raise OutputError("".join(show_difference(block, body) for block, body in wrong))
        text = (DOCS / page).read_text()
        # from the end, so that the places of earlier blocks stay valid
        for block, body in reversed(wrong):
            text = text[: block.start] + body + text[block.end :]
        if wrong:
            (DOCS / page).write_text(text)

    def _run_console(self, block: Block) -> str:
        """The body that a block of commands should have."""
        if "same as" in block.options:
            return find_same(block)
        lines: list[str] = []
        commands = read_commands(block)
        for command in commands:
            code, text = self._run_command(command.text, block)
            expected_code = (
                int(block.options.get("ends with") or 0) if command is commands[-1] else 0
            )
            if code != expected_code:
                raise OutputError(f"{block.page}: {command.text}\nends with {code}:\n{text}")
            lines += [*command.lines, *fit(command.output, self._mark(text, block))]
        return "".join(f"{line}\n" for line in lines)

    def _run_python(self, block: Block, after: Block | None) -> str:
        """The body that the block after one of Python should have, if it is for output."""
        code, text = self._run_process([sys.executable, "-c", block.body])
        if code:
            raise OutputError(f"{block.page}: {block.body}\nends with {code}:\n{text}")
        expected = after.body.splitlines() if after else []
        return "".join(f"{line}\n" for line in fit(expected, self._mark(text, block)))

    def _run_command(self, command: str, block: Block) -> tuple[int, str]:
        """The exit code of a command and its output, errors first."""
        words = split_words(command)
        if words[0] != "steadyeye":
            return self._run_process(["/bin/bash", "-c", command])
        if "serves" in block.options and words[1] == "review":
            port = find_port()
            words += ["--port", str(port)]
            running = forked.Command(*words[1:], cwd=self.path, env=self.environment)
            return 0, review_all(running).replace(f":{port}", f":{PORT}")
        done = forked.steadyeye(*words[1:], cwd=self.path, env=self.environment)
        return done.returncode, done.stderr + done.stdout

    def _run_process(self, words: Sequence[str]) -> tuple[int, str]:
        done = subprocess.run(  # noqa: S603 - what the docs say
            words, cwd=self.path, env=self.environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stderr + done.stdout

    def _mark(self, text: str, block: Block) -> list[str]:
        """The lines of an output, with markers for parts that differ between runs."""
        text = text.replace(str(self.path), "…")
        for pattern, marker in VOLATILE:
            text = pattern.sub(marker, text)
        if "varies" in block.options:
            text = re.sub(block.options["varies"], hide_groups, text)
        return [line.rstrip() for line in text.strip("\n").splitlines()]


def find_same(block: Block) -> str:
    """The body of the block of another page that begins with the same command."""
    command = read_commands(block)[0].lines
    for other in read_blocks(block.options["same as"]):
        is_console = other.is_run and other.language == "console"
        if is_console and read_commands(other)[0].lines == command:
            return other.body
    raise OutputError(f"{block.page}: {block.options['same as']} has no block with {command[0]}")


def hide_groups(match: re.Match[str]) -> str:
    """What was matched, with each group as `…`."""
    text = match[0]
    for group in range(match.re.groups, 0, -1):
        if match[group] is not None:
            low, high = (place - match.start() for place in match.span(group))
            text = f"{text[:low]}…{text[high:]}"
    return text


def show_difference(block: Block, body: str) -> str:
    """The difference of a page's block and the output, by lines."""
    lines = difflib.unified_diff(
        block.body.splitlines(), body.splitlines(), block.page, "printed", lineterm="", n=1
    )
    return "\n".join([*lines, ""])


def find_port() -> int:
    """A free port of this machine."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def fit(expected: Sequence[str], printed: list[str]) -> list[str]:
    """The output, cut where the page has a line `…`."""
    if "…" not in expected:
        return printed
    head = list(expected).index("…")
    tail = len(expected) - head - 1
    if tail + head >= len(printed):
        return printed
    return [*printed[:head], "…", *printed[len(printed) - tail :]]


def split_words(command: str) -> list[str]:
    """The words of a command, split as by a shell."""
    return shlex.split(command.replace("\\\n", " "), comments=True)


def check_page(page: str) -> list[str]:
    """The faults of the commands of a page, none of which is run."""
    faults = []
    for block in read_blocks(page):
        lines = [line.removeprefix("$ ") for line in block.body.replace("\\\n", " ").splitlines()]
        commands = [line for line in lines if line.startswith("steadyeye ")]
        if commands and block.language != "console":
            faults.append(f"{page}: '{commands[0]}' stands in no block `console`")
        if "not run" in block.options and not block.options["not run"]:
            faults.append(f"{page}: '{lines[0]}' is not run, and nothing says why")
        faults += [f"{page}: '{line}': {fault}" for line in lines if (fault := find_fault(line))]
    text = FENCE.sub("", (DOCS / page).read_text())
    for span in re.findall(r"`(steadyeye [^`\n]+)`", text):
        # a command named in a sentence has no arguments
        if (fault := find_fault(span)) and not fault.startswith("Missing"):
            faults.append(f"{page}: '{span}': {fault}")
    return faults


def find_fault(line: str) -> str:
    """The fault of a line by the command tree, the Makefile or the extras; empty if none."""
    words = split_words(line) if is_command(line) else [""]
    # "…" alone stands for omitted arguments, after an option for its value
    pairs = zip(["", *words], words, strict=False)
    words = [word for last, word in pairs if word != "…" or last.startswith("--")]
    if words[0] == "steadyeye":
        return find_fault_of_ours(words[1:])
    if words[0] == "make":
        rules = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        targets = [word for word in words[1:] if not re.match(r"[A-Z]+=", word)]
        return "".join(f"no target {word}" for word in targets if word not in rules)
    if words[:2] == ["pip", "install"]:
        known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        extras = re.findall(r"\[([\w,-]+)\]", line)
        extra_names = [name for group in extras for name in group.split(",")]
        missing = [name for name in extra_names if name not in known["optional-dependencies"]]
        return f"no extra {', '.join(missing)}" if missing else ""
    return ""


def is_command(line: str) -> bool:
    """Whether a line of a block is a command that can be checked without running it."""
    return line.startswith(("steadyeye ", "make ", "pip install "))


def find_fault_of_ours(words: Sequence[str]) -> str:
    """What is wrong with the options of a command; empty if nothing."""
    command: Any = read_tree()
    rest = list(words)
    while rest and hasattr(command, "commands"):
        if rest[0] not in command.commands:
            return "" if rest[0] in {"--help", "--version"} else f"no command {rest[0]}"
        command = command.commands[rest.pop(0)]
    from steadyeye.cli.options import ParsingError

    try:
        command.make_context(command.name, rest)
    except ParsingError as error:
        return str(error.format_message())
    return ""


@cache
def read_tree() -> Any:
    """The tree of our commands."""
    import typer

    from steadyeye.cli import COMMANDS
    from steadyeye.cli.options import app

    for name in COMMANDS:
        import_module(f"steadyeye.cli.{name}")
    return typer.main.get_command(app)


def main() -> int:
    """Runs the named pages, all by default; the number of those with differences."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="write what is printed")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("pages", nargs="*", help="below docs/; all if left out")
    arguments = parser.parse_args()
    if unknown := set(arguments.pages) - set(list_pages()):
        parser.error(f"no page docs/{min(unknown)}; name it below docs/, as how-to/pm-k.md")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="tutorials-") as path:
        data = arguments.data if arguments.data.is_dir() else None
        folder = Folder(Path(path), data, ROOT / ".cache" / "answers")
        for page in arguments.pages or list_pages():
            if folder.data is None and needs_data(page):
                print(f"{page}: left out, as there is no {arguments.data}", flush=True)
                continue
            start = time.monotonic()
            try:
                folder.run_page(page, update=arguments.update)
                print(f"{page}: {time.monotonic() - start:.0f} s", flush=True)
            except OutputError as error:
                failed += 1
                print(error, flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
