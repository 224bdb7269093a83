"""What the commands do: call the library, print what came out."""

import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyeye.cli.progress import watching
from steadyeye.cli.terminal import console, say, show, show_table
from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.format import format_value as in_unit
from steadyeye.core.format import number_of, span
from steadyeye.core.result_lookup import among
from steadyeye.core.spec import parse, split
from steadyeye.core.storage.files import Place, place
from steadyeye.core.types import Detector, Evaluated, Model, Result, Source

if TYPE_CHECKING:
    from steadyeye.explain.run import Explaining
    from steadyeye.report.render.document import Document
    from steadyeye.runner.job import Job


def run(job_file: Path | None, flags: Mapping[str, Any], shown: str) -> None:
    """`steadyeye run`; `shown`: how its progress is."""
    # a name that is not there is said before the heavy imports
    complete_job(read_job(job_file, flags), bool(flags.get("overwrite")), shown)


def complete_job(asked: "Job", overwrite: bool, shown: str) -> None:
    """Checks a job, computes it and prints its numbers; `overwrite`: deletes its folder first."""
    from steadyeye.runner import validate
    from steadyeye.runner.run import run as complete
    from steadyeye.runner.short_forms import default_folder

    progress = watching(shown)
    checked = validate.check(asked if asked.out else replace(asked, out=default_folder(asked)))
    say_assumed(checked.job.models, [task.model for task in checked.tasks])
    if overwrite:
        remove_run(place(checked.job.out))
    with progress as watcher:
        out = complete(checked, watcher)
    _finish(out, [task.source for task in checked.tasks])


ALL = ("models", "data", "out")
OF_RUN = re.compile(
    r"run\.json|data|cells|measurements|pictures|log\.jsonl|\.lock|(results|report)\..*"
)
"""What a run writes into its folder, see docs/reference/runs.md."""


def read_job(
    job_file: Path | None, flags: Mapping[str, Any], necessary: Sequence[str] = ALL[:2]
) -> "Job":
    """The job with its short forms written out as full specs, which are printed.

    `necessary`: what the job may not lack.
    """
    from steadyeye.runner import job
    from steadyeye.runner.short_forms import expand_job

    asked = {key: value for key, value in flags.items() if key != "overwrite"}
    given = job.read(job_file, asked, necessary)
    full = expand_job(given)
    for kind, texts, specs in (
        ("model", given.models, full.models),
        ("data", given.data, full.data),
    ):
        for text, spec in zip(texts, specs, strict=True):
            if text != spec:
                show(f"{kind} {text}: {spec}")
        twice = [spec for spec, times in Counter(specs).items() if times > 1]
        if twice:
            raise UsageError(f"the {kind} {twice[0]} is given twice; give it once")
    return full


def say_assumed(specs: Sequence[str], models: Sequence["Model | Detector"]) -> None:
    """Prints the preprocessing and output taken for model files whose spec has no recipe."""
    # other plugins read these from the library or from the folder that a training wrote
    bare = [spec for spec in map(parse, specs) if spec.name in ("onnx", "torch")]
    stems = {
        Path(str(spec.kwargs["path"]).rpartition(":")[2]).stem
        for spec in bare
        if "recipe" not in spec.kwargs and "classes" in spec.kwargs
    }
    for name, recipe in {model.name: model.recipe for model in models}.items():
        if name in stems and "preprocessing" in recipe:
            say(f"{name}: {assumed(recipe)}; where that is wrong, give recipe={{…}} in its spec")


def assumed(recipe: Mapping[str, Any]) -> str:
    """A recipe in words: the size of the input, its mean and std, and what the output is."""
    how = recipe["preprocessing"]
    size, resize = " x ".join(map(str, how["size"])), how["resize"]
    side = f"the short side to {resize}" if isinstance(resize, int) else f"to {resize}"
    mean, std = (", ".join(f"{value:g}" for value in how[key]) for key in ("mean", "std"))
    output = recipe["output"]
    softmax = "softmax is applied" if output == "logits" else "no softmax is applied"
    return (
        f"images are resized ({side}, {how['interpolation']}) and cropped to {size}, minus mean "
        f"{mean}, divided by std {std}; the output is taken as {output} ({softmax})"
    )


def remove_run(out: Place) -> None:
    """Deletes the run in a folder of this machine.

    Raises `UsageError` where it holds no run or more than a run, or another process is writing
    there.
    """
    from steadyeye.core.storage.run_lock import alone

    if not isinstance(out, Path):
        raise UsageError(f"--overwrite deletes folders of this machine only, not '{out}'")
    if not out.exists():
        return
    if not (out / "run.json").is_file():
        raise UsageError(f"'{out}' holds no run, so it is not deleted; choose another --out")
    others = [each.name for each in out.iterdir() if not OF_RUN.fullmatch(each.name)]
    if others:
        raise UsageError(
            f"'{out}' also holds '{sorted(others)[0]}', which no run has written; move it away, or "
            "choose another --out"
        )
    with alone(out):
        pass  # raises where another process is writing there
    shutil.rmtree(out)


def degrade(
    job_file: Path | None, flags: Mapping[str, Any], images: str, thresholds: str, shown: str
) -> None:
    """`steadyeye degrade`."""
    operators = {} if job_file else {"operators": flags["operators"] or "all"}
    asked = read_job(job_file, {**flags, **operators})
    if not job_file:
        from steadyeye.runner.sweep import metrics

        asked = replace(asked, metrics=metrics(images, thresholds, fast=asked.fast))
    complete_job(asked, bool(flags.get("overwrite")), shown)


def picture(image: Path, operators: str, levels: str | None, out: Path, **view: Any) -> None:
    """`steadyeye picture`; `view`: model, size and seed."""
    from steadyeye.runner import contact_sheet

    contact_sheet.write(
        out, contact_sheet.sheet(image, operators, levels, contact_sheet.View(**view))
    )
    show(str(out))


def score(
    path: str, over: tuple[str | None, str | None], flags: Mapping[str, Any], shown: str
) -> None:
    """`steadyeye score`; `over`: the classes that scores are over, and what category ids are."""
    from steadyeye.data.classes.class_lists import read
    from steadyeye.runner import job, saved_detections, saved_scores, validate
    from steadyeye.runner.run import run as complete
    from steadyeye.runner.short_forms import default_folder, expand_data

    progress, file = watching(shown), place(path)
    asked = job.read(None, flags, necessary=ALL[:2])
    asked = replace(asked, data=tuple(map(expand_data, asked.data)))
    classes = read(over[0]) if over[0] else None
    predictions: Any
    form: Any
    if saved_detections.are_detections(file):
        form, predictions = saved_detections, saved_detections.load(file, classes, over[1])
    else:
        form, predictions = saved_scores, saved_scores.load(file, classes)
    asked = asked if asked.out else replace(asked, out=default_folder(asked))
    found = validate.with_models(asked, [predictions])
    checked = replace(found, tasks=tuple(form.ready(predictions, each) for each in found.tasks))
    with progress as watcher:
        out = complete(checked, watcher, form.predict(predictions))
    _finish(out, [task.source for task in checked.tasks])


def check(job_file: Path | None, flags: Mapping[str, Any]) -> None:
    """`steadyeye check`."""
    asked = read_job(job_file, {**flags, "out": "-"})
    from steadyeye.data.classes import map_summary
    from steadyeye.runner import validate

    checked = validate.check(asked)
    say_assumed(asked.models, [task.model for task in checked.tasks])
    for task in checked.tasks:
        mapped = sum(bool(members) for members in task.class_map.members)
        say(
            f"{task.model.name} on {task.source.name}: {number_of(len(task.source), 'sample')}, "
            f"{mapped} of {number_of(len(task.class_map.members), 'class')} "
            f"({task.class_map.origin}), "
            f"{_competing(task.class_map.competing, len(task.class_map.others))}"
        )
        for line in map_summary.lines(task.class_map):
            say(f"  {line}")
        for note in task.identity["data"]["notes"]:
            say(f"  {note}")
    show("nothing is wrong")


def _competing(competing: int, others: int) -> str:
    """How many classes compete for an answer, and how many of them the data does not name."""
    more = f", {others:,} of them not named by the data" if others else ""
    return f"{number_of(competing, 'class competes', 'classes compete')}{more}"


def report(
    runs: Sequence[str], out: str, formats: str, metrics: str | None, analyses: str | None
) -> None:
    """`steadyeye report`."""
    more = [spec.name for spec in split(analyses or "")]
    for name in more:
        plugins.check_exists("analyses", name)
    from steadyeye.report import build

    files = reports(out, formats)
    build.write([place(run) for run in runs], files, metrics, more)
    for file in files:
        show(str(file))


def reports(out: str, formats: str) -> list[Place]:
    """The files that are asked for: `out`, or beside it one of each format."""
    asked = [name.strip() for name in formats.split(",") if name.strip()]
    to = place(out)
    return [to.with_suffix(f".{name}") for name in asked] if asked else [to]


def measure(runs: Sequence[str], workers: int, shown: str) -> None:
    """`steadyeye measure`."""
    from steadyeye.runner.measure import measure as complete

    for run in map(place, runs):
        with watching(shown) as watcher:
            measured = complete(run, watcher, workers)
        store_report(run, [each.source for each in measured])
        for each in measured:
            frames = len(each.predictions.ids)
            say(f"{each.source.name}: {frames:,} frames of {len(each.sets):,} sets measured")
        show_report(run)


def explain(how: "Explaining", flags: Mapping[str, Any], shown: str) -> None:
    """`steadyeye explain`."""
    from steadyeye.explain import run
    from steadyeye.report.explain import page
    from steadyeye.runner.short_forms import expand_data

    progress, given = watching(shown), tuple(flags["data"] or ())
    data = [expand_data(text) for text in given]
    if how.reference:
        how = replace(how, reference=expand_data(how.reference))
        # one that is among the data is computed once
        data = list(dict.fromkeys([*data, str(how.reference)]))
    checked = run.check(read_job(None, {**flags, "data": data}, necessary=ALL), how)
    with progress as watcher:
        explained = run.explain(checked, watcher)
    content = page.report(explained)
    for line in content.headline:
        say(line)
    for section in content.sections:
        say(section.title)
    show(f"report: {(explained.out / 'report.html').resolve()}")


def ls(kind: str) -> None:
    """`steadyeye ls`."""
    described = plugins.describe(kind)
    longest = max(map(len, described), default=0)
    for name, line in described.items():
        say(f"{name:<{longest}}  {line}", hang=longest + 2)


def check_plugin(kind: str, plugin: str, run: str | None) -> None:
    """`steadyeye check-plugin`."""
    from steadyeye.runner.collect import tables
    from steadyeye.testing import ContractError, check_plugin

    table = tables([place(run)])[0][1] if run else None
    try:
        show(f"{kind} {plugin}: holds. Checked {check_plugin(kind, plugin, table)}")
    except ContractError as error:
        raise UsageError(f"{kind} {plugin}: {error}") from error


def classmap(source: str, target: str) -> None:
    """`steadyeye classmap`."""
    from steadyeye.data.classes.class_lists import read
    from steadyeye.data.classes.class_mapping import by_meaning, to_csv

    console.print(to_csv(by_meaning(read(source), read(target))), markup=False, end="")


def store_report(out: Place, sources: Sequence[Source]) -> "Document":
    """The report of a run, written into its folder with the pictures that it shows."""
    from steadyeye.report import build

    content = build.document([out])
    build.store_pictures(out, sources, content)
    build.save(content, [out], [out / f for f in ("report.html", "results.json", "results.csv")])
    return content


def show_report(out: Place) -> None:
    """Prints where the report of a run is."""
    show(f"report: {(out / 'report.html').resolve()}")


def _finish(out: Place, sources: Sequence[Source]) -> None:
    content = store_report(out, sources)
    for line in content.headline:
        say(line)
    for one in content.evaluated:
        show_numbers(one)
    for line in (*content.warnings, *content.caveats):
        say(line)
    show_report(out)


def show_numbers(one: Evaluated) -> None:
    """Prints the numbers of one model on one of the data, a line each."""
    from steadyeye.report.render.document import numbers

    rows = [(*number_cells(result), result.name) for result in numbers(one)]
    if rows:
        heading = f"{one.predictions.model} on {one.predictions.data}"
        show_table((*NUMBERS, "metric"), rows, len(NUMBERS), heading=heading)


NUMBERS = ("value", "95 % interval", "n", "classes")


def number_cells(result: Result) -> tuple[str, str, str, str]:
    """What stands under `NUMBERS`, as text."""
    value, ends = in_unit(result.value, result.unit), span(result.low, result.high, result.unit)
    return value, ends, f"{result.n:,}", among(result)
