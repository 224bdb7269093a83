"""The command line: parse, call, print."""

import atexit
import gc
import sys
from importlib import import_module
from typing import Any

COMMANDS = (
    "run",
    "score",
    "plugins",
    "compare",
    "rows",
    "mine",
    "finetune",
    "cache",
    "sample",
    "review",
    "label",
    "plan",
    "view",
    "watch",
)
"""The files of this package that register commands."""


def main() -> None:
    """Runs the command line; a `UsageError` is its one line on stderr and exit code 2.

    After Ctrl-C the exit code is 130, after SIGTERM 143, after SIGHUP 129.
    """
    try:
        _run()
    except KeyboardInterrupt:
        # nothing listens to signals yet
        sys.stderr.write("steadyeye: stopped before it started\n")
        sys.exit(130)


def _run() -> None:
    import typer

    from steadyeye.cli.interrupts import INTERRUPTED, interrupts
    from steadyeye.cli.options import ParsingError, app, check_given_once, keep_text
    from steadyeye.cli.terminal import quiet_packages, spell_signs
    from steadyeye.core.errors import UsageError, describe_failure

    quiet_packages()
    spell_signs()
    interrupts.begin()
    # a process that ends searches all of its objects for garbage, 0.1 s, and then frees them anyway
    atexit.register(gc.freeze)
    try:
        for name in COMMANDS:
            import_module(f"steadyeye.cli.{name}")
        _check_text(sys.argv[1:])
        command = typer.main.get_command(app)
        commands = getattr(command, "commands", {})
        check_given_once(commands, sys.argv[1:])
        for registered in (command, *commands.values()):
            keep_text(registered)
        code = command(standalone_mode=False) or 0
        if code == INTERRUPTED:
            # Typer turns the interrupt into this exit code without a word
            code = interrupts.end()
        sys.exit(code)
    except UsageError as error:
        _end_with(str(error))
    except ParsingError as error:
        _end_with(_words_of(error))
    except OSError as error:
        # a full disk, a folder that is not ours; what can be said better is said where it arises
        _end_with(describe_failure(error))
    except KeyboardInterrupt:
        # where Typer does not see it, as in an import
        sys.exit(interrupts.end() or INTERRUPTED)
    except typer.Abort:
        sys.exit(1)


def _check_text(words: list[str]) -> None:
    """Raises `UsageError` for an argument that is not UTF-8, which no record can store."""
    from steadyeye.core.errors import UsageError

    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise UsageError(
                f"the argument {word!r:.300} is not UTF-8; write it in UTF-8, or rename its file"
            ) from None


def _words_of(error: Any) -> str:
    """The error of a command line in words, with the command that prints its help."""
    # pydantic, by which Typer 0.29 reads an enumeration, names its own kind of error
    text = " ".join(error.format_message().split()).replace("Value error, ", "")
    group = getattr(getattr(error, "ctx", None), "command", None)
    commands = ", ".join(getattr(group, "commands", {}))
    if not text or text == "Missing command.":  # a group of commands without one of them
        text = f"give one of its commands: {commands}"
    elif text.startswith("No such command") and "Did you mean" not in text:
        text = f"{text.rstrip('.')}; give one of: {commands}"
    return f"{text.rstrip('.')}; `steadyeye COMMAND --help` lists its options"


def _end_with(text: str) -> None:
    from steadyeye.cli.terminal import progress_console, say

    for line in text.splitlines():
        # a name of a file may have as many letters as it likes; what to do stands at the end
        most = f"{line[:2_000]} … {line[-1_000:]}" if len(line) > 4_000 else line
        say(f"steadyeye: {most}", to=progress_console)
    sys.exit(2)
