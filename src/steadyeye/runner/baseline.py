"""The images that a reference model gets right, to which a sweep of other models is limited."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from steadyeye.core.errors import UsageError, list_texts
from steadyeye.core.predictions import Predictions
from steadyeye.core.storage.files import Place, place
from steadyeye.core.types import Source
from steadyeye.predictions.read import cells, read
from steadyeye.runner.job import Job


def plan_baseline(sweep: Job, baseline: str) -> tuple[Job | None, Job]:
    """The job of a reference model, and the sweep that is limited to what it gets right.

    `baseline`: a model, which is run beside the folder of the sweep, or the folder of a finished
    run, which needs no job. Raises `UsageError` for a sweep that a baseline does not go with.
    """
    # with OpenCV, which whoever only reads a sweep does without
    from steadyeye.runner.short_forms import default_folder, expand_job

    if (place(baseline) / "run.json").is_file():
        return None, replace(sweep, baseline=baseline)
    limited = replace(sweep, baseline=baseline)  # what does not go with it is said first
    folder = f"{(sweep.out or default_folder(limited)).rstrip('/')}-baseline"
    reference = replace(
        sweep,
        models=(baseline,),
        out=folder,
        operators=None,
        levels=Job().levels,
        seed=0,
        metrics="accuracy",
    )
    return expand_job(reference), replace(sweep, baseline=folder)


@contextmanager
def name_in_errors(baseline: str) -> Iterator[None]:
    """Says of what is wrong with the run of a baseline that it is the baseline's."""
    try:
        yield
    except UsageError as error:
        # a line that names the baseline says so already
        texts = (text if baseline in text else f"{baseline}: {text}" for text in error.args)
        raise type(error)(*(f"the baseline {text}" for text in texts)) from error


def select_images(folder: str, source: Source, images: Sequence[int]) -> tuple[list[int], str]:
    """Those of some images of a source that the model of a finished run gets right; with a note.

    `folder`: of the run, of one model on the same source, not degraded. `images`: their places in
    the source. Swingler 2022 compares models on the images of one of them. Raises `UsageError`
    where the folder holds no such run, and where the model is right on none.
    """
    table = _find_predictions(place(folder), source)
    if table.detections is not None:
        raise UsageError(
            f"the baseline {table.model} is a detector, which is right or wrong on objects and not "
            "on images; give a classifier, or leave --baseline out"
        )
    right = set(table.ids[table.right & table.valid].tolist())
    names = source.ids
    chosen = [image for image in images if names[image] in right]
    if not chosen:
        raise UsageError(
            f"the baseline {table.model} is right on none of {len(images):,} images of "
            f"{source.name}; take another model, or leave --baseline out"
        )
    return chosen, (
        f"{len(images) - len(chosen):,} of {len(images):,} images left out: wrong by the baseline "
        f"model {table.model}, undegraded"
    )


def _find_predictions(run: Place, source: Source) -> Predictions:
    tables = [read(*folders) for folders in cells(run)]
    on_source = [t for t in tables if t.fingerprint == source.fingerprint and not t.sweep]
    if len(on_source) == 1:
        return on_source[0]
    if on_source:
        models = list_texts([table.model for table in on_source])
        raise UsageError(f"the baseline '{run}' has several models, {models}; give a run of one")
    raise UsageError(
        f"the baseline '{run}' has no predictions of {source.name} as it is; give a run on the "
        "same data, or the model itself"
    )
