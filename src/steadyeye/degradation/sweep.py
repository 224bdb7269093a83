"""A sweep: the images of a source at every level of every operator, as a source."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.abilities import detects
from steadyeye.core.boxes import Boxes
from steadyeye.core.errors import UsageError
from steadyeye.core.model_stages import AtInput
from steadyeye.core.seeds import fingerprint
from steadyeye.core.short_repr import source_in_short
from steadyeye.core.types import Classes, Image, Labels, Sample, Source, Tag
from steadyeye.degradation.operator import Context, Operator, Trail, move_boxes

NONE = -1
"""The operator of the rows at level 0, where all operators give the same image."""

COLUMNS = ("operator", "level", "image", "changed", "brightness", "profile")
"""`profile`: every image has every level, unlike in a search for failure points."""


@dataclass(frozen=True)
class Degrading:
    """The degradation of images: operators, each up to its own last level, and the seed."""

    operators: tuple[Operator, ...]
    levels: tuple[int, ...]
    seed: int = 0

    def grid(self, images: Sequence[int]) -> NDArray[np.int32]:
        """(rows, 3) image, operator, level: level 0 of an image once, then each operator's levels.

        Levels of one image and operator are consecutive, so that each is made from the one before.
        """
        steps = [(NONE, 0)] + [
            (number, level)
            for number, operator in enumerate(self.operators)
            for level in self.levels
            if 0 < level <= operator.last
        ]
        block = np.array(steps, dtype=np.int32)
        rows = np.tile(block, (len(images), 1))
        return np.column_stack([np.repeat(np.asarray(images, dtype=np.int32), len(block)), rows])

    def steps(self) -> list[list[int]]:
        """The levels of each operator, from 0."""
        return [[level for level in self.levels if level <= op.last] for op in self.operators]

    def baseline(self, images: Sequence[int]) -> NDArray[np.int32]:
        """(images, 3) the rows at level 0 alone."""
        return np.array([(image, NONE, 0) for image in images], dtype=np.int32)

    def about(self) -> dict[str, Any]:
        """The sweep as plain values: the levels of every operator, and the seed."""
        names = [operator.name for operator in self.operators]
        return {"levels": dict(zip(names, self.steps(), strict=True)), "seed": self.seed}

    def record(self) -> str:
        """A text that identifies the images: different images have different texts."""
        names = [f"{operator.name} {operator.about}" for operator in self.operators]
        return f"{names} {self.levels} {self.seed}"


@dataclass
class _Progress:
    """The latest image and its trail, so that a level is made from the one before.

    `original`: the fitted image; `measures`: of the image as it was decoded. `key`: names the
    content of the image whose id is `key_of`.
    """

    image: int = NONE
    original: Image | None = None
    measures: Mapping[str, Tag] = field(default_factory=dict)
    operator: int = NONE
    level: int = 0
    trail: Trail | None = None
    key_of: str = ""
    key: str = ""

    def measure(self, image: Image) -> Mapping[str, Tag]:
        """The measures of the latest image, added to those of its original."""
        assert self.original is not None, "an image is measured once it was made"
        # imports numba, which reading a sweep does not need
        from steadyeye.degradation.kernels import measure_brightness, measure_changed_share

        own = {
            "changed": measure_changed_share(image, self.original),
            "brightness": measure_brightness(image),
        }
        return {**self.measures, **own}

    def read_key(self, sample: Sample) -> str:
        """The key of an image of the source, read once for all its levels."""
        if self.key_of != sample.id and sample.key is not None:
            self.key, self.key_of = sample.key(), sample.id
        return self.key

    def made_of(self) -> tuple[object, ...]:
        """Nothing: its state belongs to earlier images."""
        return ()


@source_in_short
@dataclass(frozen=True, eq=False)
class Sweep:
    """A `Source` over `cells` of (image of `base`, operator, level), images at the model's input.

    `cells`: (rows, 3) int32. `members`: data class → the model classes that make it, for operators
    that need the gradient. `exhaustive`: whether the cells are the whole grid. Degraded images are
    not stored: a sample is made from the image of the source, or in `begin_pass` from the level
    before it.
    """

    base: Source
    cut: AtInput
    how: Degrading
    cells: NDArray[np.int32]
    members: Sequence[Sequence[int]]
    notes: tuple[str, ...] = ()
    exhaustive: bool = True

    @property
    def name(self) -> str:
        """The name of the source it wraps."""
        return self.base.name

    @property
    def classes(self) -> Classes | None:
        """The classes of the source it wraps."""
        return self.base.classes

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the source it wraps, and its own."""
        own = COLUMNS if self.exhaustive else COLUMNS[:-1]
        return (*self.base.columns, *own)

    @cached_property
    def fingerprint(self) -> str:
        """Depends on the source, the operators, levels and seed, and the rows."""
        return fingerprint(self.base.fingerprint, self.how.record(), self.cells.tobytes())

    @cached_property
    def ids(self) -> Sequence[str]:
        """`image@operator-level`, or `image@0`."""
        names = self._names
        return [
            f"{names[image]}@{self.how.operators[operator].name}-{level:02d}"
            if level
            else f"{names[image]}@0"
            for image, operator, level in self.cells.tolist()
        ]

    @cached_property
    def _names(self) -> Sequence[str]:
        return list(self.base.ids)

    @cached_property
    def truths(self) -> Sequence[Labels]:
        """The labels of every row."""
        truths = list(self.base.truths)
        return [truths[image] for image in self.cells[:, 0].tolist()]

    def with_rows(
        self, images: NDArray[np.str_], operators: NDArray[np.str_], levels: NDArray[np.int64]
    ) -> "Sweep":
        """The same sweep with other rows: `images` by their ids, `operators` by their names.

        Each (rows,); at level 0 the operator is ignored.
        """
        image = {name: i for i, name in enumerate(self._names)}
        operator = {member.name: i for i, member in enumerate(self.how.operators)}
        cells = [
            (image[name], operator.get(called, 0), level)
            for name, called, level in zip(images, operators, levels, strict=True)
        ]
        return replace(self, cells=np.array(cells, dtype=np.int32).reshape(-1, 3))

    def missing(self) -> Sequence[str]:
        """The files that the source it wraps lacks."""
        return self.base.missing()

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, index: int) -> Sample:
        return self._describe(index, _Progress())

    def begin_pass(self) -> "_Pass":
        """The samples for one thread; each level of an image is made from the one before it."""
        return _Pass(self, _Progress())

    def _describe(self, index: int, progress: _Progress) -> Sample:
        image, operator, level = map(int, self.cells[index])
        sample = self.base[image]
        called = self.how.operators[operator].name if level else ""
        tags = {**sample.tags, "operator": called, "level": level, "image": sample.id}
        unmeasured = {"changed": float("nan"), "brightness": float("nan")}
        return replace(
            sample,
            boxes=self._move_boxes(operator, level, sample),
            id=f"{sample.id}@{called}-{level:02d}" if level else f"{sample.id}@0",
            image=_Degraded(self, image, operator, level, sample, progress),
            tags={**tags, **unmeasured},
            measure=progress.measure,
            key=self._key(operator, level, sample, progress),
        )

    def _move_boxes(self, operator: int, level: int, sample: Sample) -> Boxes | None:
        """The true boxes of a cell, as its operator moves them."""
        chosen = self.how.operators[operator]
        if not level or chosen.move is None or sample.boxes is None:
            return sample.boxes
        from steadyeye.degradation.counter_rng import stream_key

        size = sample.size or sample.image().shape[:2]
        key = stream_key(self.how.seed, sample.id, chosen.name)
        return move_boxes(chosen, sample.boxes, level, size, key)

    def _key(
        self, operator: int, level: int, sample: Sample, progress: _Progress
    ) -> Callable[[], str] | None:
        """The key of the degraded image without making it; None if it needs the pixels."""
        chosen = self.how.operators[operator] if level else None
        if sample.key is None or (chosen and not chosen.known):
            return None
        parts = [str(self.how.seed), chosen.name, chosen.about, str(level)] if chosen else []
        if chosen and chosen.needs_gradient:
            parts += [repr([tuple(self.members[label]) for label in sample.truth])]
        # the random stream of an operator depends on the id
        return lambda: "\0".join(["degraded", progress.read_key(sample), sample.id, *parts])

    def made_of(self) -> tuple[object, ...]:
        """The fitting alone: the key of every cell has its operator and image."""
        return (type(self), self.cut.fit)

    def start(self, operator: int, image: Image, sample: Sample) -> Trail:
        """The trail of a fitted image of the source under one operator."""
        chosen = self.how.operators[operator]
        from steadyeye.degradation.counter_rng import stream_key

        key = stream_key(self.how.seed, sample.id, chosen.name)
        return chosen.start(image, Context(key, self._slope(sample.truth)))

    def _slope(self, truth: Labels) -> Callable[[NDArray[np.float32]], NDArray[np.float32]] | None:
        gradient = self.cut.gradient
        if gradient is None:
            return None
        members = [member for label in truth for member in self.members[label]]
        return lambda image: gradient(image, members)


@dataclass(frozen=True)
class _Pass:
    """The samples of a sweep, for one thread."""

    sweep: Sweep
    progress: _Progress

    def __getitem__(self, index: int) -> Sample:
        return self.sweep._describe(index, self.progress)


@dataclass(frozen=True)
class _Degraded:
    """Makes the image of one cell when it is called; `sample`: of the wrapped source."""

    sweep: Sweep
    image: int
    operator: int
    level: int
    sample: Sample
    progress: _Progress

    def __call__(self) -> Image:
        progress = self.progress
        if progress.image != self.image or progress.original is None:
            decoded = self.sample.image()
            progress.measures = self.sample.measure(decoded) if self.sample.measure else {}
            progress.original, progress.image = self.sweep.cut.fit(decoded), self.image
            progress.trail = None
        if self.level == 0:
            return progress.original
        other = progress.operator != self.operator or self.level < progress.level
        if progress.trail is None or other:
            progress.trail = self.sweep.start(self.operator, progress.original, self.sample)
        progress.operator, progress.level = self.operator, self.level
        return progress.trail(self.level)

    def made_of(self) -> tuple[object, ...]:
        """The image, how it is fitted, and the one operator, with the gradient if it needs it."""
        if not self.level:
            return type(self), self.sweep, self.sample
        chosen = self.sweep.how.operators[self.operator]
        gradient = (self.sweep.cut.gradient,) if chosen.needs_gradient else ()
        return (type(self), self.sweep, self.sample, chosen.begin, *gradient)


def refuse_without_gradient(how: Degrading, cut: AtInput, model: str) -> None:
    """Raises `UsageError` if an operator needs a gradient that the model does not have."""
    asking = [operator.name for operator in how.operators if operator.needs_gradient]
    if asking and detects(cut.model):
        raise UsageError(
            f"{asking[0]} needs the gradient of the true class of an image, which the detector "
            f"{model} does not have; leave the operator out"
        )
    if asking and cut.gradient is None:
        raise UsageError(
            f"{asking[0]} needs the gradient of {model}, which has none; give the torch module, "
            "or leave the operator out"
        )
