"""What models and sources may be able to do besides what all of them are: asked with `isinstance`.

Nothing else is looked for on a plugin; one that lacks an ability needs to say nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from steadyeye.core.types import Image, Sample

# What a model may be able to do besides; one that is not says nothing of it.


@runtime_checkable
class Detecting(Protocol):
    """A model that says whether it is a detector: `detects`."""

    @property
    def detects(self) -> bool: ...


@runtime_checkable
class Cacheable(Protocol):
    """A model that says whether its answers may be kept: `cacheable`.

    True says that its fingerprint covers all that they depend on, and that what it says of an image
    does not depend on the others in the batch.
    """

    @property
    def cacheable(self) -> bool: ...


@runtime_checkable
class Differentiable(Protocol):
    """A classifier with a gradient: `gradient`, a `core.model_stages.ClassGradient`, or None.

    What trains a network further needs its own kind,
    `models.runtimes.torch_module.TorchGradient`.
    """

    @property
    def gradient(self) -> Any: ...


@runtime_checkable
class Explainable(Protocol):
    """A detector that integrated gradients can look into: `fix_candidates(image)`, None: it cannot.

    Of an image it gives an `models.introspection.differentiable.FixedCandidates`.
    """

    @property
    def fix_candidates(self) -> Callable[[Image], Any] | None: ...


@runtime_checkable
class OnDevice(Protocol):
    """A model that says on which GPUs it is: `device`, "" for a processor."""

    @property
    def device(self) -> str: ...


@runtime_checkable
class Batched(Protocol):
    """A model that says how many images go into one pass: `most`."""

    @property
    def most(self) -> int: ...


MOST = 64
"""Images a pass at most. A page of them, 224 × 224, takes 64 MB of locked memory a thread."""

PASSES = 2
"""Passes a GPU is given at a time: it computes one while the input of the next is copied."""


def largest(fits: Callable[[int], bool]) -> int:
    """Images a pass: the largest power of two up to `MOST` that `fits`, 1 where none does."""
    images = MOST
    while images > 1 and not fits(images):
        images //= 2
    return images


# What a user's function may say of itself.


@runtime_checkable
class Marked(Protocol):
    """A user's function or module that says what covers all that it depends on."""

    @property
    def fingerprint(self) -> Any: ...


@runtime_checkable
class Cutting(Protocol):
    """A user's function that says below which score it returns nothing: `threshold`."""

    @property
    def threshold(self) -> float: ...


@runtime_checkable
class Composed(Protocol):
    """Something that makes images and says of which parts, where it holds others beside them.

    `made_of()`: the functions, classes and objects that all it makes depends on, its own class too
    where what the class does is not part of a sample's key. The cache keeps answers for as long as
    their code stays as it is; of other objects it goes through their class and all that they hold.
    """

    def made_of(self) -> tuple[object, ...]: ...


def detects(model: object) -> bool:
    """Whether a model is a detector."""
    return isinstance(model, Detecting) and bool(model.detects)


def cacheable(model: object) -> bool:
    """Whether a model's answers may be kept for another run."""
    return isinstance(model, Cacheable) and bool(model.cacheable)


# What a source may know besides.


@runtime_checkable
class OfFiles(Protocol):
    """A source that reads files, `files()`: each once, in the order of its samples; None: none."""

    def files(self) -> Sequence[Any] | None: ...


def may_have_files(source: object) -> bool:
    """Whether images of a source may be read: not where it reads files and knows of no file."""
    return not isinstance(source, OfFiles) or source.files() is None or bool(source.files())


class Samples(Protocol):
    """The samples of a source by their index."""

    def __getitem__(self, index: int, /) -> Sample: ...


@runtime_checkable
class Stepwise(Protocol):
    """A source that makes an image more quickly after the one before it, in `begin_pass()`.

    What that returns is for one thread, which takes the samples in any order.
    """

    def begin_pass(self) -> Samples: ...


@runtime_checkable
class HasFileNames(Protocol):
    """A source whose samples have names of files, `file_names`, by which saved ids find them."""

    @property
    def file_names(self) -> Sequence[str]: ...


@runtime_checkable
class Numbered(Protocol):
    """A source that numbers its classes as `category_ids`, as saved detections do; None: it not."""

    @property
    def category_ids(self) -> Sequence[int] | None: ...


@runtime_checkable
class Published(Protocol):
    """A source that says whether its samples are a published list, taken as they are."""

    @property
    def is_published_list(self) -> bool: ...


@runtime_checkable
class Adjustable(Protocol):
    """A source that says what decides its images, `settings`, for the record."""

    @property
    def settings(self) -> Mapping[str, Any]: ...
