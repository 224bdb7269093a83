"""Decodes long JSON lists in pieces, so that few Python objects exist at once."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, TypeVar

import msgspec

from steadyeye.core.seeds import BlockFingerprint

PIECE = 20_000
"""Entries of a list that are Python objects at a time."""

BLOCK = 1 << 20
"""Bytes of a file that are read at a time."""

BETWEEN = re.compile(rb".*\}(?=[ \t\r\n]*+,[ \t\r\n]*+\{)", re.DOTALL)
"""Up to the end of the last object that another one follows."""

END = re.compile(rb"\}[ \t\r\n]*+\](?=[ \t\r\n]*+[,}])")
"""Where a list of objects within an object ends, unless an object in it has such a list itself."""

LONGEST = 4  # blocks without an end of an object

MARK = "\ufeff".encode()

Entry = TypeVar("Entry")


def decode_in_pieces(raw: Sequence[msgspec.Raw], kind: type[Entry]) -> Iterator[Sequence[Entry]]:
    """The entries of a list in their order, as structures of a kind.

    Raises `msgspec.MsgspecError` for an entry of another kind.
    """
    decoder = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]
    for piece in split_pieces(raw):
        yield decoder.decode(b"[" + b",".join(piece) + b"]")


def split_pieces(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """A sequence in pieces of `PIECE`."""
    return (entries[place] for place in list_pieces(len(entries)))


def list_pieces(length: int) -> Iterator[slice]:
    """The pieces of `PIECE` of `length` entries."""
    return (slice(start, start + PIECE) for start in range(0, length, PIECE))


class ListFile:
    """A local file with one JSON list of objects, decoded while it is read.

    `fingerprint`: of its bytes, after all of them were read; see `seeds.fingerprint`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._length = path.stat().st_size
        self.fingerprint = BlockFingerprint(self._length)

    def decode(self, kind: type[Entry]) -> Iterator[Sequence[Entry]]:
        """The entries in their order, as structures of a kind.

        Raises `msgspec.MsgspecError` or `ValueError` for a file that must be read as a whole: one
        that is no list of such objects, has bytes that `text_files` removes or refuses, an
        object of several blocks, or a list of objects within an object.
        """
        decoder = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]
        for piece in self._split():
            _check_text(piece)
            # parsed from the left: a list that is valid once closed ends between two entries
            entries = decoder.decode(piece)
            if entries:
                yield entries

    def _split(self) -> Iterator[bytes]:
        """The list cut between objects, each part with its own brackets."""
        left, total = b"", 0
        with self._path.open("rb") as file:
            while block := file.read(BLOCK):
                self.fingerprint.add(block)
                total += len(block)
                left += block
                end = BETWEEN.match(left)
                if end:
                    yield left[: end.end()] + b"]"
                    left = b"[" + left[left.index(b",", end.end()) + 1 :]
                elif len(left) > LONGEST * BLOCK:
                    raise ValueError("an object of several blocks")
        if total != self._length:
            raise ValueError("the file was changed while it was read")
        yield left


class ObjectFile:
    """A local file with a JSON object, in which one long list is decoded while it is read.

    `key`: of the list of objects. `rest`: the file with `list_mark`, a text, in place of the list,
    after all of it was read. If that text is not the value of the key in `rest`, the list was a
    nested one, not that of the object itself.
    """

    def __init__(self, path: Path, key: str) -> None:
        self._path = path
        self._begin = re.compile(rb'"%s"[ \t\r\n]*+:[ \t\r\n]*+\[' % re.escape(key.encode()))
        self.list_mark = token_hex()
        self.rest = b""

    def decode(self, kind: type[Entry]) -> Iterator[Sequence[Entry]]:
        """The entries of the list in their order, as structures of a kind.

        Raises `msgspec.MsgspecError` or `ValueError` if the file must be read as a whole: see
        `ListFile`.
        """
        decoder = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]
        with self._path.open("rb") as file:
            head, left = self._find_list(file)
            last = None
            while last is None:
                block = file.read(BLOCK)
                left += block
                end = BETWEEN.match(left)
                piece = left[: end.end()] + b"]" if end else left
                _check_text(piece)
                try:
                    entries = decoder.decode(piece)
                except msgspec.MsgspecError:
                    # either the list ends in the block, or more of an object must be read
                    last = END.search(left)
                    if last is None and (not block or len(left) > LONGEST * BLOCK):
                        raise
                    continue
                if end is None:
                    raise ValueError("a list that no object is around")
                yield entries
                left = b"[" + left[left.index(b",", end.end()) + 1 :]
            yield decoder.decode(left[: last.end()])
            tail = left[last.end() :] + file.read()
        self.rest = head + b'"' + self.list_mark.encode() + b'"' + tail
        _check_text(self.rest)

    def _find_list(self, file: BinaryIO) -> tuple[bytes, bytes]:
        """The bytes before the list, and the bytes of the list so far."""
        content, start = b"", 0
        while block := file.read(BLOCK):
            content += block
            begin = self._begin.search(content, start)
            if begin:
                return content[: begin.end() - 1], content[begin.end() - 1 :]
            start = max(len(content) - BLOCK, 0)  # the key may span two blocks
        raise ValueError("no such list")


def _check_text(piece: bytes) -> None:
    """Raises `ValueError` for bytes that `text_files` refuses or removes."""
    piece.decode()  # parts that are not decoded must be text, too
    if b"\0" in piece or MARK in piece:
        raise ValueError("a zero byte or a mark within the text")
