"""Asking a model about samples, image by image as it takes them."""

from collections.abc import Iterator, Sequence
from typing import Any

from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.types import Image, Sample, Tag
from steadyeye.evaluation.tasks import Task


def ask(task: Task, samples: Sequence[Sample]) -> tuple[Any, list[str], list[dict[str, Tag]]]:
    """What the model says of the samples that decode, each sample's error or '', and its tags.

    The tags hold what was measured of the images. Raises `SampleError` at the first sample that
    fails, unless the job goes on, and `UsageError` where the model itself fails.
    """
    errors = [""] * len(samples)
    tags = [dict(sample.tags) for sample in samples]
    skip = task.identity["on_error"] == "skip"

    def decoded() -> Iterator[Image]:
        for i, sample in enumerate(samples):
            try:
                image = sample.image()
            except SampleError as error:
                if not skip:
                    raise SampleError(
                        f"{error}; finished shards are kept: mend it and run the same command "
                        "again, or record such samples and go on with --on-error skip"
                    ) from error
                errors[i] = str(error)
                continue
            if sample.measure:
                tags[i] |= sample.measure(image)
            yield image

    try:
        return task.model(decoded()), errors, tags
    except UsageError:
        raise
    except Exception as error:
        # a model is the user's code: whatever it raises is told in one line, the rest is chained
        raise UsageError(
            f"{task.model.name} failed between '{samples[0].id}' and '{samples[-1].id}': "
            f"{type(error).__name__}: {error}"
        ) from error
