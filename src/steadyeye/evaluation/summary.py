"""Sealed predictions summed up: results, sections, pictures, and the report's files."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from steadyeye.core import plugins
from steadyeye.core.errors import SampleError, unknown
from steadyeye.core.spec import Spec, split
from steadyeye.core.table import Predictions
from steadyeye.core.types import Evaluated, Result, Section, Source
from steadyeye.evaluation.plan import available, metric
from steadyeye.images.files import thumbnail
from steadyeye.predictions.cell import write_file
from steadyeye.predictions.read import cells, read
from steadyeye.report.document import Document, headline
from steadyeye.report.html import render_html
from steadyeye.report.markdown import render_markdown
from steadyeye.report.tables import render_csv, render_json

RENDER: Mapping[str, Callable[[Document], str]] = {
    "md": render_markdown,
    "json": render_json,
    "csv": render_csv,
}


def results(predictions: Predictions, metrics: Sequence[Spec] = ()) -> dict[str, Result]:
    """The results of the metrics asked for, or of all that the predictions allow, by name."""
    asked = metrics or available(predictions.columns)
    found = [metric(spec)(predictions, **spec.kwargs) for spec in asked]
    return {result.name: result for result in found}


def document(runs: Sequence[Path], metrics: str | None = None) -> Document:
    """The report of one or several runs, from their sealed predictions alone.

    `metrics`: a list of specs; None: those of each run's job.
    """
    evaluated, records = [], []
    for run in runs:
        folders = cells(run)
        records.append(json.loads((run / "run.json").read_text(encoding="utf-8")))
        asked = split(metrics or records[-1]["job"]["metrics"] or "")
        for predictions in map(read, folders):
            evaluated.append(Evaluated(predictions, results(predictions, asked)))
    return Document(
        title="How steady is it?",
        headline=headline(evaluated),
        evaluated=evaluated,
        sections=sections(evaluated),
        provenance={str(run): record for run, record in zip(runs, records, strict=True)},
        commands=tuple(
            command(record["job"], run) for run, record in zip(runs, records, strict=True)
        ),
    )


def sections(evaluated: Sequence[Evaluated]) -> tuple[Section, ...]:
    """What every analysis has to say of the models on each source."""
    by_data: dict[str, list[Evaluated]] = {}
    for one in evaluated:
        by_data.setdefault(one.predictions.data, []).append(one)
    found = []
    for data, models in by_data.items():
        for name in plugins.names("analyses"):
            analysis = plugins.load("analyses", name)
            columns = set.intersection(*(set(one.predictions.columns) for one in models))
            if set(getattr(analysis, "needs", ())) - columns:
                continue
            section = analysis(models)
            if section is not None:
                title = section.title if len(by_data) == 1 else f"{section.title} · {data}"
                found.append(replace(section, title=title))
    return tuple(sorted(found, key=lambda section: section.place))


def write(runs: Sequence[Path], files: Sequence[Path], metrics: str | None = None) -> Document:
    """Writes the report of `runs` to files, each in the format its suffix names; returns it."""
    for file in files:
        if file.suffix.lstrip(".") not in {"html", *RENDER}:
            raise unknown("report format", file.suffix.lstrip("."), ["html", *RENDER])
    content = document(runs, metrics)
    for file in files:
        if file.suffix == ".html":
            text = render_html(content, lambda data, sample: _stored(runs, data, sample))
        else:
            text = RENDER[file.suffix[1:]](content)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, text.encode())
    return content


def store_pictures(run: Path, sources: Mapping[str, Source]) -> None:
    """Keeps the pictures the report of a run shows, so that it can be made without the data.

    `sources`: by name. A picture that cannot be decoded is left out; the report says so.
    """
    content = document([run])
    wanted = {
        (exhibit.data, picture.sample)
        for section in content.sections
        for exhibit in section.exhibits
        for picture in exhibit.pictures
    }
    rows = {one.predictions.data: one.predictions.ids for one in content.evaluated}
    for data, sample in sorted(wanted):
        path = _picture(run, data, sample)
        if path.is_file() or data not in sources:
            continue
        row = int(np.flatnonzero(rows[data] == sample)[0])
        try:
            image = sources[data][row].image()
        except SampleError:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, thumbnail(image))


def command(job: Mapping[str, Any], out: Path) -> str:
    """The command that repeats a job."""
    words = ["steadyeye", "run"]
    for flag, key in (("--model", "models"), ("--data", "data")):
        for text in job[key]:
            words += [flag, _quoted(text)]
    for key in ("metrics", "class_map", "reduce", "on_error", "batch"):
        if job.get(key) not in (None, *_DEFAULTS.get(key, ())):
            words += [f"--{key.replace('_', '-')}", _quoted(str(job[key]))]
    return " ".join([*words, "--out", _quoted(str(out))])


_DEFAULTS: dict[str, tuple[object, ...]] = {
    "reduce": ("max",),
    "on_error": ("stop",),
    "batch": (16,),
}


def _quoted(text: str) -> str:
    return f'"{text}"' if any(c in text for c in " ()'*") else text


def _picture(run: Path, data: str, sample: str) -> Path:
    name = hashlib.sha256(f"{data}\n{sample}".encode()).hexdigest()[:24]
    return run / "pictures" / f"{name}.jpg"


def _stored(runs: Sequence[Path], data: str, sample: str) -> bytes | None:
    for run in runs:
        path = _picture(run, data, sample)
        if path.is_file():
            return path.read_bytes()
    return None
