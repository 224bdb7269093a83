"""Backgrounds to put an object upon, and those that qualify: the detector finds nothing there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.predictions import Predictions
from steadyeye.core.seeds import fingerprint, stream
from steadyeye.core.types import Classes, Image, Labels, Sample
from steadyeye.data.images import image_file
from steadyeye.explain import backdrops
from steadyeye.explain.context import Subject

FEWEST = 6
"""Backgrounds that must qualify."""

NOTHING = 0.1
"""A background qualifies if the detector finds nothing above this in it. Lau et al. 2021."""

MADE = {"gradient": 4, "noise": 4, "frames": 4}
"""The kinds that are made up, and how many of each."""

Size = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Background:
    """One background: `make(size)` gives it in a size, `mark` changes when it does."""

    name: str
    make: Callable[[Size], Image]
    mark: str


@dataclass(frozen=True, eq=False)
class Backdrops:
    """A `Source` of backgrounds in every size that they are used in."""

    name: str
    backgrounds: Sequence[Background]
    sizes: Sequence[Size]
    classes: Classes | None = None
    columns: tuple[str, ...] = ("target", "background")
    notes: tuple[str, ...] = ()

    @property
    def ids(self) -> Sequence[str]:
        """Each background's name, and the size."""
        return [f"{b.name}@{h}x{w}" for b in self.backgrounds for h, w in self.sizes]

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the backgrounds and the sizes."""
        return fingerprint(*(b.mark for b in self.backgrounds), repr(list(self.sizes)))

    @property
    def truths(self) -> Sequence[Labels]:
        """No labels."""
        return [()] * len(self)

    def missing(self) -> Sequence[str]:
        """Nothing: what is there was read."""
        return ()

    def __len__(self) -> int:
        return len(self.backgrounds) * len(self.sizes)

    def __getitem__(self, index: int) -> Sample:
        which, size = divmod(index, len(self.sizes))
        one = self.backgrounds[which]
        return Sample(
            self.ids[index],
            partial(one.make, self.sizes[size]),
            group=one.name,
            tags={"target": "", "background": one.name},
        )


def in_folder(folder: str) -> list[Background]:
    """The images of a user's folder, each cut to fill what it is put behind."""
    root = Path(folder).expanduser()
    found = sorted(p for p in root.glob("*") if p.suffix.lower() in image_file.SUFFIXES)
    if not found:
        raise UsageError(f"no image in the folder of backgrounds '{folder}'; give another folder")
    return [
        Background(
            path.name,
            partial(_of_file, path),
            fingerprint("file", path.name, path.read_bytes()),
        )
        for path in found
    ]


def make_backgrounds(kinds: Sequence[str], subject: Subject) -> list[Background]:
    """The backgrounds that are made up: "gradient", "noise" (1/f) and "frames" (own, blurred)."""
    found = []
    for kind in kinds:
        if kind not in MADE:
            raise unknown("kind of background", kind, MADE)
        found += [_make_background(subject, kind, number) for number in range(MADE[kind])]
    return found


def qualifying(
    backgrounds: Sequence[Background], predictions: Predictions
) -> tuple[list[Background], str]:
    """Those in which nothing above 0.1 was found in any size, and why the first other is none.

    `predictions`: of `Backdrops` of them.
    """
    found = predictions.detections
    assert found is not None, "a probe is asked of a detector"
    highest = np.zeros(len(predictions))
    np.maximum.at(highest, found.image, found.score)
    # what could not be looked at does not qualify
    bad = (highest > NOTHING) | ~predictions.valid
    named = np.asarray(predictions.tags["background"])
    refused = set(named[bad].tolist())
    why = ""
    if refused:
        row = int(np.flatnonzero(bad)[np.argmax(highest[bad])])
        best = np.flatnonzero(found.image == row)[np.argmax(found.score[found.image == row])]
        what = predictions.model_classes[found.label[best]]
        why = f"in '{predictions.ids[row]}' it detects '{what}' with {highest[row]:.2f}"
    return [each for each in backgrounds if each.name not in refused], why


def _of_file(path: Path, size: Size) -> Image:
    return backdrops.covering(image_file.read(path), size)


def _make_background(subject: Subject, kind: str, number: int) -> Background:
    seed, name = subject.seed, f"{kind} {number + 1}"

    def make(size: Size) -> Image:
        # a frame is drawn whatever the size; noise is another picture in another size
        rng = stream(seed, "background", kind, str(number))
        if kind == "frames":
            which = int(rng.integers(len(subject.source)))
            return backdrops.blur_image(subject.source[which].image(), size)
        return (backdrops.gradient if kind == "gradient" else backdrops.natural_noise)(size, rng)

    of = subject.source.fingerprint if kind == "frames" else ""
    return Background(name, make, fingerprint(kind, str(number), str(seed), of))
