"""The command line: parse, call, print."""

import sys
from importlib import import_module
from pathlib import Path

COMMANDS = (
    "commands",
    "measure",
    "compare",
    "mining",
    "explaining",
    "finetune",
    "caching",
    "reviewing",
)
"""The files of this package that register commands."""


def main() -> None:
    """Runs the command line; a `UsageError` is its one line on stderr and exit code 2."""
    from steadyeye.cli.options import app, check_given_once
    from steadyeye.core.errors import UsageError

    # the user's own modules are named from the folder they stand in, as with `python -m`
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    for name in COMMANDS:
        import_module(f"steadyeye.cli.{name}")
    try:
        check_given_once(sys.argv[1:])
        app()
    except UsageError as error:
        for line in str(error).splitlines():
            sys.stderr.write(f"steadyeye: {line}\n")
        sys.exit(2)
