"""Sends the pictures of a set, and records those that it cannot send."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from fastapi import HTTPException

from steadyeye.data.annotations.review_set import image_name, image_path

ROLES = ("anchor", "image", "duplicate_image")
"""The keys of an item whose values are names of pictures."""

logger = logging.getLogger("uvicorn.error")


class Pictures:
    """The pictures under a folder; `faults`: name → why it could not be sent at the last request.

    Items with such a picture are not served until the picture can be sent.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.faults: dict[str, str] = {}

    def read(self, name: str) -> bytes:
        """The bytes of a picture; 404 if they are missing or do not match its name."""
        content = self._read_file(name)
        fault = "" if content and image_name(content) == name else "damaged in"
        fault = fault if content else "missing from"
        if not fault:
            self.faults.pop(name, None)
            return content
        reason = f"the image {name} is {fault} the set's folder"
        if self.faults.get(name) != reason:
            self.faults[name] = reason
            logger.error("%s: its items are left out; copy it there again", reason)
        raise HTTPException(404, reason)

    def lacks(self, payload: Mapping[str, Any]) -> bool:
        """Whether an item has a picture that could not be sent, and still cannot."""
        small = (frame["image"] for frame in payload.get("strip", ()))
        names = (payload[role] for role in ROLES if role in payload)
        return any(self._is_faulty(name) for name in chain(names, small))

    def list_faults(self) -> Sequence[str]:
        """Why pictures cannot be sent, for those requested since the app started."""
        return [self.faults[name] for name in sorted(self.faults) if self._is_faulty(name)]

    def _is_faulty(self, name: str) -> bool:
        if name in self.faults:
            with suppress(HTTPException):
                self.read(name)
        return name in self.faults

    def _read_file(self, name: str) -> bytes:
        path = image_path(self.root, name)
        with suppress(OSError, RuntimeError):  # a loop of links is a RuntimeError
            # a link to elsewhere, also one of its folders, is not of the set
            if path.is_file() and path.resolve() == image_path(self.root.resolve(), name):
                return path.read_bytes()
        return b""
