"""The command line: parse, call, print."""

import sys


def main() -> None:
    """Runs the command line; a `UsageError` is its one line on stderr and exit code 2."""
    from steadyeye.cli.commands import app
    from steadyeye.core.errors import UsageError

    try:
        app()
    except UsageError as error:
        for line in str(error).splitlines():
            sys.stderr.write(f"steadyeye: {line}\n")
        sys.exit(2)
