"""Backgrounds for an object, the test that they qualify, and the mask of the object.

A background qualifies if the detector detects nothing in it. The mask is from the data, from a
segmenter, or guessed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from steadyeye.core.boxes import exceed_score, iou
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.predictions import Predictions
from steadyeye.core.seeds import fingerprint, stream
from steadyeye.core.types import Classes, Image, Labels, Sample
from steadyeye.data.annotations.coco_geometry import extent
from steadyeye.data.images import image_file
from steadyeye.explain.context import Subject
from steadyeye.explain.targets import OVERLAP, Target

Size: TypeAlias = tuple[int, int]

BLUR = 12
"""The blur of own frames: the standard deviation is a 12th of the longer side."""

FEWEST = 6
"""Backgrounds that must qualify."""

NOTHING = 0.1
"""A background qualifies if the detector finds nothing above this in it. Lau et al. 2021."""

MADE = {"gradient": 4, "noise": 4, "frames": 4}
"""The generated kinds, and the number of each."""


Masker = Callable[[Image, Target], NDArray[np.bool_] | None]
"""`(image, target) -> (h, w) bool`, the mask of the object in the target's box, or None."""

ROUNDS = 5
"""Iterations of GrabCut."""


def gradient(size: Size, rng: Generator) -> Image:
    """(h, w, 3) uint8: a gradient between two random colours in a random direction."""
    height, width = size
    angle = rng.uniform(0, 2 * np.pi)
    first, second = rng.uniform(30, 225, (2, 3))
    y, x = np.mgrid[:height, :width]
    along = np.cos(angle) * x / max(width - 1, 1) + np.sin(angle) * y / max(height - 1, 1)
    share = (along - along.min()) / max(float(np.ptp(along)), 1e-9)
    return np.asarray(np.rint(first + share[..., None] * (second - first)), dtype=np.uint8)


def natural_noise(size: Size, rng: Generator) -> Image:
    """(h, w, 3) uint8: noise whose amplitude falls as 1/f, as that of natural images does.

    Field 1987, "Relations between the statistics of natural images and the response properties of
    cortical cells". Grey with a tint of a third as much contrast; mean 128, deviation 40.
    """
    height, width = size
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :])
    frequency[0, 0] = np.inf
    parts = [np.fft.rfft2(rng.standard_normal(size)) / frequency for _ in range(4)]
    grey, *tints = (np.fft.irfft2(part, size) for part in parts)
    grey, *tints = (plane / max(float(plane.std()), 1e-9) for plane in (grey, *tints))
    colour = np.stack([grey + tint / 3 for tint in tints], axis=-1)
    return np.asarray(np.clip(np.rint(128 + 40 * colour), 0, 255), dtype=np.uint8)


def blur_image(image: Image, size: Size) -> Image:
    """(h, w, 3) uint8: the image fitted to the size, blurred until no object is recognisable."""
    fitted = covering(image, size)
    return np.asarray(cv2.GaussianBlur(fitted, (0, 0), max(size) / BLUR), dtype=np.uint8)


def covering(image: Image, size: Size) -> Image:
    """(h, w, 3) uint8: the centre of the image, scaled so that it just fills the size."""
    height, width = image.shape[:2]
    scale = max(size[0] / height, size[1] / width)
    fitted = (max(round(height * scale), size[0]), max(round(width * scale), size[1]))
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    resized = cv2.resize(image, fitted[::-1], interpolation=how)
    top, left = (fitted[0] - size[0]) // 2, (fitted[1] - size[1]) // 2
    return np.ascontiguousarray(resized[top : top + size[0], left : left + size[1]])


@dataclass(frozen=True, eq=False)
class Background:
    """One background: `make(size)` returns it in a size; `mark` changes with its content."""

    name: str
    make: Callable[[Size], Image]
    mark: str


@dataclass(frozen=True, eq=False)
class Backdrops:
    """A `Source` of backgrounds in every size in which they are used."""

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
        """Nothing: all files were read."""
        return ()

    def __len__(self) -> int:
        return len(self.backgrounds) * len(self.sizes)

    def __getitem__(self, index: int) -> Sample:
        number, size = divmod(index, len(self.sizes))
        background = self.backgrounds[number]
        return Sample(
            self.ids[index],
            partial(background.make, self.sizes[size]),
            group=background.name,
            tags={"target": "", "background": background.name},
        )


def read_backgrounds(folder: str) -> list[Background]:
    """The images of a user's folder, each cropped to the size of its foreground."""
    root = Path(folder).expanduser()
    paths = sorted(p for p in root.glob("*") if p.suffix.lower() in image_file.SUFFIXES)
    if not paths:
        raise UsageError(f"no image in the folder of backgrounds '{folder}'; give another folder")

    def fit_file(path: Path, size: Size) -> Image:
        return covering(image_file.read(path), size)

    marks = (fingerprint("file", path.name, path.read_bytes()) for path in paths)
    return [
        Background(path.name, partial(fit_file, path), mark)
        for path, mark in zip(paths, marks, strict=True)
    ]


def make_backgrounds(kinds: Sequence[str], subject: Subject) -> list[Background]:
    """The generated backgrounds: "gradient", "noise" (1/f) and "frames" (own, blurred)."""
    backgrounds = []
    for kind in kinds:
        if kind not in MADE:
            raise unknown("kind of background", kind, MADE)
        backgrounds += [_make_background(subject, kind, number) for number in range(MADE[kind])]
    return backgrounds


def select_qualifying(
    backgrounds: Sequence[Background], predictions: Predictions
) -> tuple[list[Background], str]:
    """The backgrounds without a detection above 0.1 in any size, and why the first other one fails.

    `predictions`: on `Backdrops` of them.
    """
    detections = predictions.detections
    assert detections is not None, "a probe is asked of a detector"
    highest = np.zeros(len(predictions))
    np.maximum.at(highest, detections.image, detections.score)
    # images without a prediction do not qualify
    bad = exceed_score(highest, NOTHING) | ~predictions.valid
    refused = set(np.asarray(predictions.tags["background"])[bad].tolist())
    why = ""
    if refused:
        row = int(np.flatnonzero(bad)[np.argmax(highest[bad])])
        best = np.flatnonzero(detections.image == row)[
            np.argmax(detections.score[detections.image == row])
        ]
        class_name = predictions.model_classes[detections.label[best]]
        why = f"in '{predictions.ids[row]}' it detects '{class_name}' with {highest[row]:.2f}"
    return [background for background in backgrounds if background.name not in refused], why


def _make_background(subject: Subject, kind: str, number: int) -> Background:
    seed, name = subject.seed, f"{kind} {number + 1}"

    def make(size: Size) -> Image:
        # the same frame in every size; noise is a new picture in each size
        rng = stream(seed, "background", kind, str(number))
        if kind == "frames":
            row = int(rng.integers(len(subject.source)))
            return blur_image(subject.source[row].image(), size)
        return (gradient if kind == "gradient" else natural_noise)(size, rng)

    of = subject.source.fingerprint if kind == "frames" else ""
    return Background(name, make, fingerprint(kind, str(number), str(seed), of))


@dataclass(frozen=True, eq=False)
class Mask:
    """The mask of an object: `size` is (h, w), `packed` its bits; `origin` is its source."""

    size: tuple[int, int]
    packed: NDArray[np.uint8]
    origin: str

    @cached_property
    def pixels(self) -> NDArray[np.bool_]:
        """(h, w) bool."""
        height, width = self.size
        flat = np.unpackbits(self.packed, count=height * width)
        return flat.reshape(height, width).astype(np.bool_)


def pack_mask(pixels: NDArray[np.bool_], origin: str) -> Mask:
    """The packed mask of some pixels, an eighth of the size."""
    return Mask((pixels.shape[0], pixels.shape[1]), np.packbits(pixels), origin)


def of_truth(sample: Sample, target: Target) -> NDArray[np.bool_] | None:
    """(h, w) the mask of the true object that overlaps the target best; None below IoU > 0.5.

    Crowds are no objects. Also None if the data have no mask of it.
    """
    if sample.masks is None or sample.boxes is None or not len(sample.boxes):
        return None
    overlap = iou(np.array([target.box]), sample.boxes.boxes)[0] * ~sample.boxes.crowd
    best = int(overlap.argmax())
    if overlap[best] <= OVERLAP:
        return None
    mask = sample.masks()[best]
    return mask if mask.any() else None


def nearest(masks: NDArray[np.bool_], target: Target) -> NDArray[np.bool_] | None:
    """(h, w) the one of (n, h, w) masks whose box overlaps the target best, None at IoU ≤ 0.5."""
    masks = masks[masks.any(axis=(1, 2))]
    boxes = [extent(mask) for mask in masks]
    if not boxes:
        return None
    overlap = iou(np.array([target.box]), np.array(boxes))[0]
    best = int(overlap.argmax())
    return np.asarray(masks[best]) if overlap[best] > OVERLAP else None


def grabcut(image: Image, target: Target) -> NDArray[np.bool_] | None:
    """(h, w) GrabCut's mask of the target's box; None if it is empty.

    A guess from colours alone, weaker than an annotated mask. Rother, Kolmogorov, Blake 2004.
    """
    height, width = image.shape[:2]
    x0, y0 = max(int(target.box[0]), 0), max(int(target.box[1]), 0)
    x1, y1 = min(int(target.box[2]), width), min(int(target.box[3]), height)
    covered = (x1 - x0) * (y1 - y0)
    if min(x1 - x0, y1 - y0) < 2 or covered == height * width:
        return None
    # GrabCut draws from the generator of the thread
    cv2.setRNGSeed(0)
    state = np.zeros((height, width), dtype=np.uint8)
    models = np.zeros((2, 1, 65))
    box = (x0, y0, x1 - x0, y1 - y0)
    cv2.grabCut(image, state, box, models[0], models[1], ROUNDS, cv2.GC_INIT_WITH_RECT)
    foreground = (state == cv2.GC_FGD) | (state == cv2.GC_PR_FGD)
    return foreground if foreground.any() else None
