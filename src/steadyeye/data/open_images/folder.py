"""The folder of the images, whose files are found by name when they are first asked for."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.data.images.image_file import SUFFIXES


@dataclass(frozen=True)
class ImageFolder:
    """A folder with images at or below it, each named by its id."""

    root: Path

    @cached_property
    def files(self) -> Mapping[str, str]:
        """Id → where its file is below the folder.

        Raises `UsageError` where there is no folder, or two files have the same id.
        """
        if not self.root.is_dir():
            raise UsageError(f"no folder at '{self.root}'; check the path")
        paths: dict[str, str] = {}
        twice: list[str] = []
        # os.walk, as Path.rglob does not enter linked folders
        for folder, _, names in os.walk(self.root, followlinks=True):
            below = os.path.relpath(folder, self.root)
            for name in names:
                stem, suffix = os.path.splitext(name)
                if suffix.lower() in SUFFIXES:
                    twice += [stem] if stem in paths else []
                    paths[stem] = name if below == "." else f"{below}/{name}"
        if twice:
            raise UsageError(
                f"'{self.root}' has {number_of(len(twice), 'image')} more than once, first "
                f"'{min(twice)}'"
            )
        return paths

    def path(self, id_: str) -> Path:
        """The file of an image; where it would be, if there is none."""
        return self.root / self.files.get(id_, f"{id_}.jpg")
