"""Optional protocols of models and sources, checked with `isinstance`.

Nothing else is read from a plugin; a plugin without an ability declares nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from steadyeye.core.types import Image, Sample

# What a model may be able to do besides; one that is not says nothing of it.


@runtime_checkable
class Detecting(Protocol):
    """A model with `detects`: whether it is a detector."""

    @property
    def detects(self) -> bool: ...


@runtime_checkable
class Cacheable(Protocol):
    """A model with `cacheable`: whether its predictions may be cached.

    True means that its fingerprint covers everything that they depend on, and that the prediction
    for an image does not depend on the rest of the batch.
    """

    @property
    def cacheable(self) -> bool: ...


@runtime_checkable
class Differentiable(Protocol):
    """A classifier with a gradient: `gradient`, a `core.model_stages.ClassGradient`, or None.

    Fine-tuning needs a `models.runtimes.torch_module.TorchGradient`.
    """

    @property
    def gradient(self) -> Any: ...


@runtime_checkable
class Explainable(Protocol):
    """A detector with integrated gradients: `fix_candidates(image)`, None if it has none.

    It returns a `models.introspection.differentiable.FixedCandidates`.
    """

    @property
    def fix_candidates(self) -> Callable[[Image], Any] | None: ...


@runtime_checkable
class OnDevice(Protocol):
    """A model with `device`: its GPUs, "" for the CPU."""

    @property
    def device(self) -> str: ...


@runtime_checkable
class Batched(Protocol):
    """A model with `most`: images per pass."""

    @property
    def most(self) -> int: ...


MOST = 64
"""Most images per pass. As 224 × 224 they take 64 MB of pinned memory per thread."""

PASSES = 2
"""Passes on a GPU at a time: it computes one while the input of the next is copied."""


def largest(fits: Callable[[int], bool]) -> int:
    """Images per pass: the largest power of two up to `MOST` that `fits`, or 1."""
    images = MOST
    while images > 1 and not fits(images):
        images //= 2
    return images


# What a user's function may say of itself.


@runtime_checkable
class Marked(Protocol):
    """A user's function or module with its own `fingerprint`."""

    @property
    def fingerprint(self) -> Any: ...


@runtime_checkable
class Cutting(Protocol):
    """A user's function with `threshold`: the least score that it returns."""

    @property
    def threshold(self) -> float: ...


@runtime_checkable
class Composed(Protocol):
    """A maker of images that lists the parts they depend on.

    `made_of()`: the functions, classes and objects on which its images depend, also its own class
    if that is not part of a sample's key. Cached predictions are valid while their code is
    unchanged; for other objects the cache reads their class and all their attributes.
    """

    def made_of(self) -> tuple[object, ...]: ...


def detects(model: object) -> bool:
    """Whether a model is a detector."""
    return isinstance(model, Detecting) and bool(model.detects)


def cacheable(model: object) -> bool:
    """Whether a model's predictions may be cached for another run."""
    return isinstance(model, Cacheable) and bool(model.cacheable)


# What a source may know besides.


@runtime_checkable
class OfFiles(Protocol):
    """A source with `files()`: its files, each once, in the order of its samples, or None."""

    def files(self) -> Sequence[Any] | None: ...


def may_have_files(source: object) -> bool:
    """Whether images of a source may be read: not if it reads files and has none."""
    return not isinstance(source, OfFiles) or source.files() is None or bool(source.files())


class Samples(Protocol):
    """The samples of a source by their index."""

    def __getitem__(self, index: int, /) -> Sample: ...


@runtime_checkable
class Stepwise(Protocol):
    """A source that makes an image faster after the one before it, in `begin_pass()`.

    The returned object is for one thread, which takes the samples in any order.
    """

    def begin_pass(self) -> Samples: ...


@runtime_checkable
class HasFileNames(Protocol):
    """A source with `file_names`, by which saved ids are matched to samples."""

    @property
    def file_names(self) -> Sequence[str]: ...


@runtime_checkable
class Numbered(Protocol):
    """A source with `category_ids`, the class numbers of saved detections, or None."""

    @property
    def category_ids(self) -> Sequence[int] | None: ...


@runtime_checkable
class Published(Protocol):
    """A source that declares whether its samples are an unchanged published list."""

    @property
    def is_published_list(self) -> bool: ...


@runtime_checkable
class Adjustable(Protocol):
    """A source with `settings`, which decide its images, for the record."""

    @property
    def settings(self) -> Mapping[str, Any]: ...
