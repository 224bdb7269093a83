"""Confines names in a file to the folder that the user named."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import Place

VARIABLE = "STEADYEYE_ROOTS"
"""Further folders to which names may lead, separated as in `$PATH`."""


def confine(root: Place, origin: object, cure: str = "") -> Callable[[str], Place]:
    """A function that returns the place, below `root`, of a name in the file `origin`.

    A name may be absolute, contain `..` or lead over links if it ends inside `root` or a folder of
    `$STEADYEYE_ROOTS`. Raises `UsageError` for every other name, and for one that is no text.
    `cure`: how the user names another root.
    """
    roots = _list_roots(root) if isinstance(root, Path) else ()

    # many images are in few folders
    @cache
    def real(folder: str) -> str:
        return os.path.realpath(folder)

    def locate(name: str) -> Place:
        if not isinstance(name, str) or "\0" in name:
            raise UsageError(f"'{origin}' names the file {str(name)[:100]!r}; correct it")
        if not isinstance(root, Path):
            if ".." in name.split("/"):
                raise _outside(origin, name, root, cure)
            return root / name
        path = root / name
        # as text, because sets name tens of thousands of images
        folder, own_name = os.path.split(text := str(path))
        # "..", "." or "" is no file of the folder before it
        plain = own_name not in ("", ".", "..") and not os.path.islink(text)
        end = f"{real(folder)}{os.sep}{own_name}" if plain else os.path.realpath(text)
        if not any(_is_below(end, folder) for folder in roots):
            raise _outside(origin, name, root, cure)
        return path

    return locate


def check_folder(root: Path, folder: Path, origin: object, cure: str = "") -> None:
    """Raises `UsageError`, as `confine` does, for a folder named in a file, before it is listed.

    Links to the folder itself and in it are followed, as in any folder that is listed.
    """
    path = os.path.abspath(folder)
    if not any(_is_below(path, above) for above in _list_roots(root, os.path.abspath)):
        raise _outside(origin, str(folder), root, cure)


def _list_roots(root: Path, form: Callable[[Path], str] = os.path.realpath) -> tuple[str, ...]:
    """The resolved root and folders of the variable."""
    others = [part for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
    return tuple(form(Path(part).expanduser()) for part in (str(root), *others))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _outside(origin: object, name: str, root: Place, cure: str) -> UsageError:
    cure = cure or "give a folder that holds it"
    also = f", or allow its own: export {VARIABLE}=FOLDER" if isinstance(root, Path) else ""
    return UsageError(f"'{origin}' names '{name[:200]}', outside of '{root}'; {cure}{also}")
