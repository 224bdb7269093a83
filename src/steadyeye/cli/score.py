"""The command that scores saved predictions, without the model and the images."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadyeye.cli.options import (
    ClassOptions,
    Data,
    Metrics,
    Out,
    ProgressOptions,
    command,
    job_flags,
)
from steadyeye.cli.progress import watching
from steadyeye.cli.run import NECESSARY
from steadyeye.cli.run_report import finish_run
from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import Place, place

if TYPE_CHECKING:
    from steadyeye.core.types import Classes


PredictionsFile = Annotated[
    str,
    typer.Argument(
        help="JSON file: for each sample id its scores, class index or class name; or "
        "detections as COCO results."
    ),
]
CategoryIds = Annotated[
    str | None,
    typer.Option(
        help="Category ids of detections: 'data' for those of the data's annotations, or the "
        "number of the first class, 0 or 1."
    ),
]


@command()
def score(
    *,
    predictions: PredictionsFile,
    data: Data = None,
    out: Out = None,
    classes: Annotated[
        str | None,
        typer.Option(help="Classes that the file predicts: a known list (imagenet1k) or a file."),
    ] = None,
    category_ids: CategoryIds = None,
    metrics: Metrics = None,
    mapping: ClassOptions,
    display: ProgressOptions,
) -> None:
    """Score saved predictions, without the model and the images."""
    from steadyeye.core.abilities import may_have_files
    from steadyeye.core.disk_columns import give_arrays_own_pages, return_free_memory
    from steadyeye.core.storage.run_lock import check_out
    from steadyeye.data.classes.class_lists import read
    from steadyeye.runner import job, validate
    from steadyeye.runner.run import run as complete
    from steadyeye.runner.short_forms import default_folder, expand_data

    give_arrays_own_pages()
    progress, file = watching(display.form), place(predictions)
    flags = job_flags(mapping, model=[str(file)], data=data, out=out, metrics=metrics)
    score_job = job.read(None, flags, necessary=NECESSARY[:2])
    score_job = replace(score_job, data=tuple(map(expand_data, score_job.data)))
    check_out(place(score_job.out))
    class_list = read(classes) if classes else None
    form, answers = _load_answers(file, class_list, category_ids)
    score_job = score_job if score_job.out else replace(score_job, out=default_folder(score_job))
    matched = validate.with_models(score_job, [answers])
    checked = replace(matched, tasks=tuple(form.ready(answers, task) for task in matched.tasks))
    # of the others the report takes no pictures, and annotations take memory
    sources = [task.source for task in checked.tasks if may_have_files(task.source)]
    with progress as watcher:
        folder = complete(checked, watcher, form.predict(answers))
    # the report reads what was sealed, and the columns of the file take as much memory
    del answers, matched, checked
    return_free_memory()
    finish_run(folder, sources)


def _load_answers(
    file: Place, class_list: "Classes | None", category_ids: str | None
) -> tuple[Any, Any]:
    """The module that reads a file of predictions or detections, and what the file holds."""
    from steadyeye.runner import saved_detections, saved_scores

    if saved_detections.are_detections(file):
        return saved_detections, saved_detections.load(file, class_list, category_ids)
    if category_ids is not None:
        raise UsageError(
            f"--category-ids '{category_ids}' is for detections, and '{file}' holds none; leave "
            "the option out"
        )
    return saved_scores, saved_scores.load(file, class_list)
