"""The external data files of an ONNX file, which must be next to it.

ONNX's own library is no dependency of the core, and versions of ONNX Runtime differ in the paths
they follow, so this module reads the few fields that name a file from the protocol buffers
(https://protobuf.dev/programming-guides/encoding,
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
"""

from collections.abc import Iterator
from pathlib import Path

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.confinement import confine

VARINT, EIGHT, TEXT, FOUR = 0, 1, 2, 5
"""Wire types of protocol buffers."""
LARGEST_TAG = 2**32
"""The largest tag: 32 bits; libraries drop higher bits, and so read another field."""
FIELDS = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {
        **{5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    },
    "sparse": {1: "tensor", 2: "tensor"},
}
"""Kind of message → the fields that lead to tensors, and their kinds."""
NAME, EXTERNAL = 8, 13
"""Fields of a tensor: its name, and the place of its data as pairs of texts."""
KEY, VALUE = 1, 2
IN_MEMORY = "*/"
"""Prefix of ONNX Runtime's own locations, which it takes as addresses in memory."""


def data_files(file: Path) -> tuple[Path, ...]:
    """The files with the weights of `file`, sorted; empty if it holds them itself.

    Raises `UsageError` for a file that is no ONNX, and if a name is absolute, leads out of the
    folder (of the target if `file` is a link), or names no file with the stated offset and length.
    """
    paths = set()
    for tensor, entries in list_entries(read_content(file), str(file)):
        title = f"'{file}', tensor '{tensor[:100]}'"
        path = _locate(file, title, entries.get("location", ""))
        _check_span(title, path, entries)
        paths.add(path)
    return tuple(sorted(paths))


def list_contents(file: Path) -> list[bytes]:
    """The content of an ONNX file and of each file of its weights, for a fingerprint."""
    return [read_content(file), *(read_content(path) for path in data_files(file))]


def list_entries(content: bytes, name: str) -> list[tuple[str, dict[str, str]]]:
    """The tensors of an ONNX model with external data: name and location entries.

    Raises `UsageError` if the content is no ONNX; `name`: its name in the error.
    """
    tensors = []
    # no recursion: what nests is as deep as the file says
    messages = [("model", memoryview(content))]
    try:
        while messages:
            kind, message = messages.pop()
            if kind != "tensor":
                below = FIELDS[kind]
                messages += [(below[n], part) for n, part in _fields(message) if n in below]
                continue
            title, entries = "", {}
            for number, part in _fields(message):
                if number == NAME:
                    title = bytes(part).decode()
                elif number == EXTERNAL:
                    pair = {field: bytes(text).decode() for field, text in _fields(part)}
                    if pair.get(KEY, "") in entries:
                        raise ValueError("a key stands twice")
                    entries[pair.get(KEY, "")] = pair.get(VALUE, "")
            if entries:
                tensors.append((title, entries))
    except (ValueError, IndexError):
        raise UsageError(
            f"cannot load '{name}': it is no ONNX file, or damaged; export it again or copy it "
            "once more"
        ) from None
    return tensors


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The number and the content of each field that is no plain number, in order."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, wire = tag >> 3, tag & 7
        if tag >= LARGEST_TAG or not number:
            raise ValueError("a field number that libraries read differently")
        if wire == VARINT:
            _, at = _varint(message, at)
            continue
        if wire == TEXT:
            length, at = _varint(message, at)
            yield number, message[at : at + length]
        elif wire in (EIGHT, FOUR):
            length = 8 if wire == EIGHT else 4
        else:
            raise ValueError("a group, which ONNX does not have")
        at += length
        if at > len(message):
            raise ValueError("cut short")


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """A number of one to ten bytes, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("a number of more than ten bytes")


def _locate(file: Path, title: str, name: str) -> Path:
    """The file of weights with a name, next to the ONNX file."""
    cure = "put the file of the weights next to it and export it with that name"
    if Path(name).is_absolute() or name.startswith(IN_MEMORY):
        raise UsageError(f"{title}: keeps its data in '{name[:200]}', not next to it; {cure}")
    try:
        path = confine(file.parent, file, cure)(name)
    except UsageError:
        # stores of downloads keep links to files that lie side by side elsewhere
        if not file.is_symlink():
            raise
        path = file.parent / name
        confine(file.resolve().parent, file, cure)(str(path.resolve()))
    if not isinstance(path, Path) or not path.is_file():
        raise UsageError(
            f"{title}: keeps its data in '{name[:200]}', which is no file next to it; copy it too"
        )
    return path


def _check_span(title: str, path: Path, entries: dict[str, str]) -> None:
    """Raises `UsageError` unless a file has the bytes of an entry."""
    numbers = [entries.get(key, "0") for key in ("offset", "length")]
    for text in numbers:
        if not (text.isascii() and text.isdecimal() and len(text) < 20):
            raise UsageError(
                f"{title}: its offset or length in '{path.name}' is '{text[:40]}', which is no "
                "number of bytes; export it again"
            )
    size, end = path.stat().st_size, sum(map(int, numbers))
    if end > size:
        raise UsageError(
            f"{title}: its data end at byte {end:,} of '{path.name}', which has {size:,}; copy "
            "that file again"
        )


def read_content(file: Path) -> bytes:
    """The bytes of a file. Raises `UsageError` if it cannot be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read the ONNX file '{file}': {error.strerror}; check the path"
        ) from error
