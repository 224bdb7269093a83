"""The signals that stop a command, and a terminal that closes while a command runs."""

import errno
import os
import signal

STOPS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Ctrl-C, a request to terminate, and the end of the terminal; Windows has no SIGHUP."""


def leave_closed_terminal() -> None:
    """Discards output to a closed terminal, which would be an error."""
    closed = [stream for stream in (1, 2) if _is_closed_terminal(stream)]
    if closed:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in closed:
            os.dup2(nowhere, stream)
        os.close(nowhere)


def _is_closed_terminal(stream: int) -> bool:
    if not hasattr(os, "tcgetpgrp"):
        return False
    try:
        os.tcgetpgrp(stream)
    except OSError as error:
        return error.errno == errno.EIO
    return False
