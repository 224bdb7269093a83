"""The command line: parse, call, print."""

import sys
from importlib import import_module

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
    from steadyeye.cli.options import app
    from steadyeye.core.errors import UsageError

    for name in COMMANDS:
        import_module(f"steadyeye.cli.{name}")
    try:
        app()
    except UsageError as error:
        for line in str(error).splitlines():
            sys.stderr.write(f"steadyeye: {line}\n")
        sys.exit(2)
