"""Permission to run code: only the user may name it, never a file.

Code that the user names on the command line, in a call or in the job file is run. While a spec that
another file holds is read (`distrust`), a Python path or a pickle in it is refused, unless the user
has named the same one, by `--allow-code` or by using it.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import PurePath

from steadyeye.core.errors import UsageError

OPTION = "--allow-code"

_allowed_names: set[str] = set()
_requested_names: ContextVar[dict[str, None] | None] = ContextVar("requested_names", default=None)
_file: ContextVar[str | None] = ContextVar("file", default=None)


def allow_code(*names: str) -> None:
    """Lets files name this code: Python paths such as `my_models:network`, or pickled files.

    It holds for the rest of the process. Each name is the one in the error.

    Example, of a folder whose network a function of the user's own builds:

        >>> import steadyeye as se
        >>> se.allow_code("my_models:network")
    """
    _allowed_names.update(map(_whole, names))


def list_allowed() -> tuple[str, ...]:
    """The code that the user has named so far, for another process of the same user's."""
    return tuple(sorted(_allowed_names))


@contextmanager
def distrust(file: object) -> Iterator[None]:
    """A block in which specs come from a file, not from the user."""
    token = _file.set(str(file))
    try:
        yield
    finally:
        _file.reset(token)


@contextmanager
def record_requests() -> Iterator[dict[str, None]]:
    """A block that collects the code that files name in it, allowed or not, in order."""
    names: dict[str, None] = {}
    token = _requested_names.set(names)
    try:
        yield names
    finally:
        _requested_names.reset(token)


def check_code(name: str) -> None:
    """Raises `UsageError` where a file, and not the user, has named this code."""
    file = _file.get()
    requested = _requested_names.get()
    if file is not None and requested is not None:
        requested[name] = None
    if file is None:
        _allowed_names.add(_whole(name))
    elif _whole(name) not in _allowed_names:
        raise UsageError(
            f"'{file}' asks to run '{name}', which can do whatever you can; if you trust it, add "
            f"{OPTION} '{name}' (in Python: steadyeye.allow_code({name!r}))"
        )


def check_names(names: Iterable[str], file: object) -> None:
    """Raises `UsageError` for the first name in a file that is a Python path, as `check_code`."""
    with distrust(file):
        for name in names:
            if ":" in name:
                check_code(name)


def _whole(name: str) -> str:
    """One text for all forms of a name: with `py:`, or a file by another path."""
    text = name.removeprefix("py:")
    home, colon, thing = text.rpartition(":")
    if home.endswith(".py"):
        return f"{_resolve(home)}{colon}{thing}"
    return text if colon else _resolve(text)


def _resolve(path: str) -> str:
    from os.path import expanduser, realpath

    return str(PurePath(realpath(expanduser(path))))
