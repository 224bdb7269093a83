"""The commands that compute a run or write its report, and functions that other commands share."""

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadyeye.cli.options import (
    CacheOptions,
    ClassOptions,
    CountedImages,
    EngineOptions,
    Formats,
    InferenceOptions,
    JobOptions,
    Levels,
    Metrics,
    Operators,
    Overwrite,
    ProgressOptions,
    ReportFile,
    ReportMetrics,
    Runs,
    app,
    command,
    job_flags,
    join_options,
)
from steadyeye.cli.progress import watching
from steadyeye.cli.run_report import check_trackers, finish_run, report_files
from steadyeye.cli.terminal import say, show
from steadyeye.core.errors import UsageError, find_repeated
from steadyeye.core.format import number_of
from steadyeye.core.spec import parse, split
from steadyeye.core.storage.files import Place, place

if TYPE_CHECKING:
    from steadyeye.core.types import Detector, Model
    from steadyeye.runner.job import Job


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Measure how steady a vision model is under natural change."""
    if version:
        from steadyeye import __version__

        typer.echo(__version__)
        raise typer.Exit


Trackers = Annotated[
    list[str] | None,
    typer.Option(
        "--log",
        help="Log the finished run to mlflow, wandb, tensorboard or dvclive; may be repeated.",
    ),
]


@command()
def run(
    *,
    job: JobOptions,
    overwrite: Overwrite = False,
    trackers: Trackers = None,
    metrics: Metrics = None,
    mapping: ClassOptions,
    inference: InferenceOptions,
    engine: EngineOptions,
    cache: CacheOptions,
    display: ProgressOptions,
) -> None:
    """Evaluate models on data. If it stops, the same command resumes it."""
    # a name that is not there is said before the heavy imports
    flags = job_flags(job, mapping, inference, engine, cache, metrics=metrics)
    check_trackers(trackers)
    complete_job(read_job(job.job, flags), overwrite, display.form, trackers or ())


FailurePoints = Annotated[
    str | None,
    typer.Option(
        help="Thresholds of the failure points, each above 0 and at most 1: an accuracy, or of "
        "a detector a share of its mAP at level 0; default: 0.9,0.5,0.1."
    ),
]


@command()
def degrade(
    *,
    job: JobOptions,
    overwrite: Overwrite = False,
    trackers: Trackers = None,
    operators: Operators = None,
    levels: Levels = None,
    counted: CountedImages,
    failure_points: FailurePoints = None,
    fast: Annotated[
        bool,
        typer.Option(
            "--fast", help="Search only the failure points, in about a tenth of the time."
        ),
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="Random seed of the operators; default: 0.")
    ] = None,
    mapping: ClassOptions,
    inference: InferenceOptions,
    engine: EngineOptions,
    cache: CacheOptions,
    display: ProgressOptions,
) -> None:
    """Degrade images level by level: accuracy profiles, failure points. Resumes like `run`."""
    check_trackers(trackers)
    sweep = {"operators": operators, "levels": levels, "seed": seed, "fast": fast}
    flags = job_flags(job, mapping, inference, engine, cache, **sweep)
    if not job.job:
        flags["operators"] = flags["operators"] or "all"
    sweep_job = read_job(job.job, flags)
    if not job.job or counted.images or failure_points:
        from steadyeye.runner.sweep import metrics

        # what does not go with a baseline is said first
        limited = replace(sweep_job, baseline=counted.baseline or sweep_job.baseline)
        images = "all" if limited.baseline else counted.images or "right"
        chosen = metrics(images, failure_points or "0.9,0.5,0.1", limited.fast, limited)
        sweep_job = replace(sweep_job, metrics=chosen)
    if counted.baseline:
        sweep_job = complete_baseline(sweep_job, counted.baseline, overwrite, display.form)
    complete_job(sweep_job, overwrite, display.form, trackers or ())


@command()
def picture(
    image: Annotated[Path, typer.Argument(help="Image file.")],
    operators: Operators = None,
    levels: Annotated[
        str | None,
        typer.Option(
            help="Levels: first:last:step, or a list such as 5,10,20; default: 0,5,10,20,30, or "
            "all of an operator with at most 5."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Image file to write; its suffix sets the format.")
    ] = Path("sheet.png"),
    model: Annotated[
        str | None,
        typer.Option(help="Model whose input size the image gets; gradient_descent needs one."),
    ] = None,
    size: Annotated[
        int, typer.Option(help="Side of the image in pixels, if there is no --model.")
    ] = 224,
    seed: Annotated[int, typer.Option(help="Random seed of the operators.")] = 0,
) -> None:
    """Write one image under operators and levels as a contact sheet."""
    from steadyeye.runner import contact_sheet

    view = contact_sheet.View(model=model, size=size, seed=seed)
    sheet = contact_sheet.sheet(image, join_options(operators) or "all", levels, view)
    contact_sheet.write(out, sheet)
    show(str(out))


@command()
def check(
    *,
    job: JobOptions,
    metrics: Metrics = None,
    operators: Annotated[
        list[str] | None,
        typer.Option(
            "--operators",
            "--operator",
            help="Degradation operators, e.g. 'jpeg, white_fog'; default: none; may be repeated.",
        ),
    ] = None,
    levels: Levels = None,
    mapping: ClassOptions,
    inference: InferenceOptions,
    engine: EngineOptions,
    cache: CacheOptions,
) -> None:
    """Check a job without inference: print what it would do, or every error in it."""
    sweep = {"operators": operators, "levels": levels}
    flags = job_flags(job, mapping, inference, engine, cache, metrics=metrics, **sweep)
    checked_job = read_job(job.job, flags)
    from steadyeye.data.classes.class_mapping import describe_matches
    from steadyeye.runner import validate

    checked = validate.check(checked_job)
    say_assumed(checked_job.models, [task.model for task in checked.tasks])
    for task in checked.tasks:
        mapped = sum(bool(members) for members in task.class_map.members)
        others = len(task.class_map.others)
        foreign = f", {others:,} of them not in the data" if others else ""
        say(
            f"{task.model.name} on {task.source.name}: {number_of(len(task.source), 'sample')}, "
            f"{mapped} of {number_of(len(task.class_map.members), 'class')} "
            f"({task.class_map.origin}), "
            f"{number_of(task.class_map.competing, 'class competes', 'classes compete')}{foreign}"
        )
        for line in describe_matches(task.class_map):
            say(f"  {line}")
        for note in task.identity["data"]["notes"]:
            say(f"  {note}")
    show("nothing is wrong")


@command()
def report(
    runs: Runs,
    out: ReportFile = "report.html",
    formats: Formats = "",
    metrics: ReportMetrics = None,
    analyses: Annotated[
        list[str] | None,
        typer.Option(
            help="Analyses besides the default ones; `steadyeye ls analyses` lists all; may be "
            "repeated."
        ),
    ] = None,
) -> None:
    """Write one report of one or more runs."""
    from steadyeye.core import plugins

    more = [spec.name for spec in split(join_options(analyses) or "")]
    for name in more:
        plugins.check_exists("analyses", name)
    from steadyeye.report import build

    files = report_files(out, formats)
    build.write([place(run) for run in runs], files, join_options(metrics), more)
    for file in files:
        show(str(file))


def complete_baseline(sweep: "Job", baseline: str, overwrite: bool, form: str) -> "Job":
    """Computes the undegraded run of a sweep, and returns the sweep limited by it."""
    from steadyeye.runner import validate
    from steadyeye.runner.sweep import name_in_errors, plan_baseline

    reference, limited = plan_baseline(sweep, baseline)
    if reference is not None:
        validate.check(sweep)
        with name_in_errors(baseline):
            complete_job(reference, overwrite, form)
    return limited


def complete_job(
    requested: "Job", overwrite: bool, form: str, trackers: Sequence[str] = ()
) -> None:
    """Checks a job, computes it and prints its numbers; `overwrite`: deletes its folder first.

    `form`: of its progress. `trackers`: the experiment trackers that the finished run is logged to.
    """
    from steadyeye.runner import validate
    from steadyeye.runner.run import run as complete
    from steadyeye.runner.short_forms import default_folder

    progress = watching(form)
    checked = validate.check(
        requested if requested.out else replace(requested, out=default_folder(requested))
    )
    say_assumed(checked.job.models, [task.model for task in checked.tasks])
    if overwrite:
        remove_run(place(checked.job.out))
    with progress as watcher:
        out = complete(checked, watcher)
    finish_run(out, [task.source for task in checked.tasks], trackers)


NECESSARY = ("models", "data", "out")
OF_RUN = re.compile(
    r"run\.json|data|cells|measurements|pictures|log\.jsonl|\.lock|(results|report)\..*"
    r"|tensorboard|dvclive|wandb"
)
"""Files and folders that a run writes, see docs/reference/runs.md."""


def read_job(
    job_file: Path | None, flags: Mapping[str, Any], necessary: Sequence[str] = NECESSARY[:2]
) -> "Job":
    """The job with its short forms written out as full specs, which are printed.

    `necessary`: the required keys of the job.
    """
    from steadyeye.runner import job
    from steadyeye.runner.short_forms import expand_job

    requested = job.read(job_file, flags, necessary)
    full = expand_job(requested)
    for kind, texts, specs in (
        ("model", requested.models, full.models),
        ("data", requested.data, full.data),
    ):
        for text, spec in zip(texts, specs, strict=True):
            if text != spec:
                show(f"{kind} {text}: {spec}")
        twice = find_repeated(specs)
        if twice:
            raise UsageError(f"the {kind} {twice[0]} is given twice; give it once")
    return full


def say_assumed(specs: Sequence[str], models: Sequence["Model | Detector"]) -> None:
    """Prints the preprocessing and output taken for model files whose spec has no recipe."""
    # other plugins, and folders of trained models, have settings of their own
    bare = [spec for spec in map(parse, specs) if spec.name in ("onnx", "torch")]
    stems = {
        Path(str(spec.kwargs["path"]).rpartition(":")[2]).stem
        for spec in bare
        if "recipe" not in spec.kwargs and not Path(str(spec.kwargs["path"])).is_dir()
    }
    for name, recipe in {model.name: model.recipe for model in models}.items():
        if name in stems and "preprocessing" in recipe:
            say(
                f"{name}: {describe_recipe(recipe)}; if that is wrong, give recipe={{…}} in its "
                "spec"
            )


def describe_recipe(recipe: Mapping[str, Any]) -> str:
    """A recipe in words: the size, mean and std of the input, and the kind of output."""
    how = recipe["preprocessing"]
    size, resize = " x ".join(map(str, how["size"])), how["resize"]
    side = f"the short side to {resize}" if isinstance(resize, int) else f"to {resize}"
    mean, std = (", ".join(f"{value:g}" for value in how[key]) for key in ("mean", "std"))
    order = ", channels B, G, R" if how.get("order") == "bgr" else ""
    output = recipe["output"]
    softmax = "softmax is applied" if output == "logits" else "no softmax is applied"
    return (
        f"images are resized ({side}, {how['interpolation']}) and cropped to {size}, minus mean "
        f"{mean}, divided by std {std}{order}; the output is taken as {output} ({softmax})"
    )


def remove_run(out: Place) -> None:
    """Deletes the run in a folder of this machine.

    Raises `UsageError` if it holds no run or other files too, or if another process is writing
    there.
    """
    from steadyeye.core.storage.run_lock import hold_run

    if not isinstance(out, Path):
        raise UsageError(
            f"--overwrite cannot delete folders of a store; delete '{out}' yourself, or choose "
            "another --out"
        )
    if not out.exists():
        return
    if not (out / "run.json").is_file():
        raise UsageError(f"'{out}' holds no run, so it is not deleted; choose another --out")
    others = [path.name for path in out.iterdir() if not OF_RUN.fullmatch(path.name)]
    if others:
        raise UsageError(
            f"'{out}' also holds '{sorted(others)[0]}', which is no file of a run; move it away, "
            "or choose another --out"
        )
    with hold_run(out):
        pass  # raises where another process is writing there
    shutil.rmtree(out)
