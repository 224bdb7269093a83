"""What the commands do: call the library, print what came out."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from steadyeye.cli.progress import watching
from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.types import Evaluated, Result, Source
from steadyeye.storage.place import Place, place

if TYPE_CHECKING:
    from steadyeye.evaluation.explain import Explaining
    from steadyeye.evaluation.job import Job

console = Console(highlight=False, soft_wrap=True)


def run(job_file: Path | None, flags: Mapping[str, Any], shown: str) -> None:
    """`steadyeye run`; `shown`: how its progress is."""
    # a name that is not there is said before the heavy imports
    complete_job(read_job(job_file, flags), bool(flags.get("overwrite")), shown)


def complete_job(asked: "Job", overwrite: bool, shown: str) -> None:
    """Checks a job, computes it and prints its numbers; `overwrite`: deletes its folder first."""
    from steadyeye.evaluation import plan
    from steadyeye.evaluation.run import run as complete
    from steadyeye.evaluation.short_forms import default_folder

    progress = watching(shown)
    checked = plan.check(asked if asked.out else replace(asked, out=default_folder(asked)))
    if overwrite:
        remove_run(place(checked.job.out))
    with progress as watcher:
        out = complete(checked, watcher)
    _finish(out, [task.source for task in checked.tasks])


ALL = ("models", "data", "out")


def read_job(
    job_file: Path | None, flags: Mapping[str, Any], necessary: Sequence[str] = ALL[:2]
) -> "Job":
    """The job with its short forms written out as full specs, which are printed.

    `necessary`: what the job may not lack.
    """
    from steadyeye.evaluation import job
    from steadyeye.evaluation.short_forms import expand_job

    asked = {key: value for key, value in flags.items() if key != "overwrite"}
    given = job.read(job_file, asked, necessary)
    full = expand_job(given)
    for kind, texts, specs in (
        ("model", given.models, full.models),
        ("data", given.data, full.data),
    ):
        for text, spec in zip(texts, specs, strict=True):
            if text != spec:
                console.print(f"{kind} {text}: {spec}", markup=False)
    return full


def remove_run(out: Place) -> None:
    """Deletes the run in a folder of this machine.

    Raises `UsageError` where it holds no run, or another process is writing there.
    """
    from steadyeye.storage.lease import alone

    if not isinstance(out, Path):
        raise UsageError(f"--overwrite deletes folders of this machine only, not '{out}'")
    if not out.exists():
        return
    if not (out / "run.json").is_file():
        raise UsageError(f"'{out}' holds no run, so it is not deleted; choose another --out")
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
        from steadyeye.evaluation.sweeps import metrics

        asked = replace(asked, metrics=metrics(images, thresholds, fast=asked.fast))
    complete_job(asked, bool(flags.get("overwrite")), shown)


def picture(image: Path, operators: str, levels: str, out: Path, **view: Any) -> None:
    """`steadyeye picture`; `view`: model, size and seed."""
    from steadyeye.evaluation import contact

    contact.write(out, contact.sheet(image, operators, levels, contact.View(**view)))
    console.print(str(out), markup=False)


def score(
    path: str, over: tuple[str | None, str | None], flags: Mapping[str, Any], shown: str
) -> None:
    """`steadyeye score`; `over`: the classes that scores are over, and what category ids are."""
    from steadyeye.classes.known import read
    from steadyeye.evaluation import job, plan, saved, saved_detections
    from steadyeye.evaluation.run import run as complete
    from steadyeye.evaluation.short_forms import default_folder, expand_data

    progress, file = watching(shown), place(path)
    asked = job.read(None, flags, necessary=ALL[:2])
    asked = replace(asked, data=tuple(map(expand_data, asked.data)))
    classes = read(over[0]) if over[0] else None
    predictions: Any
    form: Any
    if saved_detections.are_detections(file):
        form, predictions = saved_detections, saved_detections.load(file, classes, over[1])
    else:
        form, predictions = saved, saved.load(file, classes)
    asked = asked if asked.out else replace(asked, out=default_folder(asked))
    found = plan.with_models(asked, [predictions])
    checked = replace(found, tasks=tuple(form.ready(predictions, each) for each in found.tasks))
    with progress as watcher:
        out = complete(checked, watcher, form.predict(predictions))
    _finish(out, [task.source for task in checked.tasks])


def check(job_file: Path | None, flags: Mapping[str, Any]) -> None:
    """`steadyeye check`."""
    asked = read_job(job_file, {**flags, "out": "-"})
    from steadyeye.classes import partners
    from steadyeye.evaluation import plan

    checked = plan.check(asked)
    for task in checked.tasks:
        mapped = sum(bool(members) for members in task.class_map.members)
        console.print(
            f"{task.model.name} on {task.source.name}: {len(task.source):,} samples, "
            f"{mapped} of {len(task.class_map.members)} classes ({task.class_map.origin}), "
            f"{_competing(task.class_map.competing, len(task.class_map.others))}"
        )
        for line in partners.lines(task.class_map):
            console.print(f"  {line}", markup=False)
        for note in task.identity["data"]["notes"]:
            console.print(f"  {note}")
    console.print("nothing is wrong")


def _competing(competing: int, others: int) -> str:
    """How many classes compete for an answer, and how many of them the data does not name."""
    more = f", {others:,} of them not named by the data" if others else ""
    return f"{competing:,} class{'es compete' if competing != 1 else ' competes'}{more}"


def report(runs: Sequence[str], out: str, formats: str, metrics: str | None) -> None:
    """`steadyeye report`."""
    from steadyeye.evaluation import summary

    files = reports(out, formats)
    summary.write([place(run) for run in runs], files, metrics)
    for file in files:
        console.print(str(file))


def reports(out: str, formats: str) -> list[Place]:
    """The files that are asked for: `out`, or beside it one of each format."""
    asked = [name.strip() for name in formats.split(",") if name.strip()]
    to = place(out)
    return [to.with_suffix(f".{name}") for name in asked] if asked else [to]


def measure(runs: Sequence[str], workers: int, shown: str) -> None:
    """`steadyeye measure`."""
    from steadyeye.evaluation.measure import measure as complete

    for run in map(place, runs):
        with watching(shown) as watcher:
            measured = complete(run, watcher, workers)
        _finish(run, [each.source for each in measured])


def explain(how: "Explaining", flags: Mapping[str, Any], shown: str) -> None:
    """`steadyeye explain`."""
    from steadyeye.evaluation import explain
    from steadyeye.evaluation.short_forms import expand_data

    progress, given = watching(shown), tuple(flags["data"] or ())
    data = [expand_data(text) for text in given]
    if how.reference:
        how = replace(how, reference=expand_data(how.reference))
        # one that is among the data is computed once
        data = list(dict.fromkeys([*data, str(how.reference)]))
    checked = explain.check(read_job(None, {**flags, "data": data}, necessary=ALL), how)
    with progress as watcher:
        explained = explain.explain(checked, watcher)
    content = explain.report(explained)
    for line in content.headline:
        console.print(line, markup=False)
    for section in content.sections:
        console.print(section.title, markup=False)
    console.print(f"report: {(explained.out / 'report.html').resolve()}", markup=False)


def ls(kind: str) -> None:
    """`steadyeye ls`."""
    described = plugins.describe("degrade" if kind == "operators" else kind)
    width = max(map(len, described), default=0)
    for name, line in described.items():
        console.print(f"{name:<{width}}  {line}", markup=False)


def classmap(source: str, target: str) -> None:
    """`steadyeye classmap`."""
    from steadyeye.classes.known import read
    from steadyeye.classes.mapping import by_meaning, to_csv

    console.print(to_csv(by_meaning(read(source), read(target))), markup=False, end="")


def _finish(out: Place, sources: Sequence[Source]) -> None:
    from steadyeye.evaluation import summary

    content = summary.document([out])
    summary.store_pictures(out, sources, content)
    summary.save(content, [out], [out / f for f in ("report.html", "results.json", "results.csv")])
    for line in content.headline:
        console.print(line, markup=False)
    if content.has_numbers:
        console.print(_numbers(content.evaluated))
    console.print(f"report: {(out / 'report.html').resolve()}", markup=False)


def _numbers(evaluated: Sequence[Evaluated]) -> Table:
    from steadyeye.core.results import among
    from steadyeye.report.document import numbers

    table = Table(box=None, pad_edge=False)
    for column in ("model", "data", "metric"):
        table.add_column(column, overflow="fold")
    for column in ("value", "95 % interval", "n", "classes"):
        table.add_column(column, justify="right")
    for one in evaluated:
        for result in numbers(one):
            model, data = one.predictions.model, one.predictions.data
            table.add_row(model, data, result.name, *_cells(result), among(result))
    return table


def _cells(result: Result) -> tuple[str, str, str]:
    if result.value is None:
        return "—", "—", f"{result.n:,}"
    if result.unit == "difference":
        from steadyeye.charts.style import shown, span

        ends = span(result.low, result.high, result.unit)
        return shown(result.value, result.unit), ends, f"{result.n:,}"
    form, unit = {"share": (".1%", ""), "seconds": (".2f", " s")}.get(result.unit, (".1f", ""))
    value = f"{result.value:{form}}{unit}"
    if result.low is None:
        return value, "—", f"{result.n:,}"
    high = "…" if result.high is None else f"{result.high:{form}}{unit}"
    return value, f"{result.low:{form}} – {high}", f"{result.n:,}"
