"""Sealed predictions summed up: sections, pictures, and the report's files."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from steadyeye.core.errors import SampleError, unknown
from steadyeye.core.sections import Picture
from steadyeye.core.types import Evaluated, Source
from steadyeye.evaluation.collect import collect, record
from steadyeye.evaluation.job import Job
from steadyeye.evaluation.sections import analyses_not_installed, sections
from steadyeye.images.files import thumbnail
from steadyeye.images.marking import heated, marked
from steadyeye.predictions.measured import state
from steadyeye.report.document import Document, title
from steadyeye.report.headline import headline
from steadyeye.report.html import render_html
from steadyeye.report.markdown import render_markdown
from steadyeye.report.tables import render_csv, render_json
from steadyeye.storage.place import Place, place
from steadyeye.storage.write import write_file

RENDER: Mapping[str, Callable[[Document], str]] = {
    "md": render_markdown,
    "json": render_json,
    "csv": render_csv,
}

SMALL: Mapping[str, int] = {"longest": 64, "quality": 70}
"""How a thumbnail is kept: some 2 kB, so that a page can hold hundreds."""


def document(runs: Sequence[Place], metrics: str | None = None) -> Document:
    """The report of one or several runs, from their sealed predictions alone.

    `metrics`: a list of specs; None: those of each run's job.
    """
    return written(runs, collect(runs, metrics))


def written(
    runs: Sequence[Place], evaluated: Sequence[Evaluated], analyses: Sequence[str] = ()
) -> Document:
    """The report of models from `runs`; `analyses`: the only ones to be heard, all if empty."""
    records = {str(run): record(run) for run in runs}
    return Document(
        title=title(evaluated),
        headline=headline(evaluated),
        evaluated=evaluated,
        sections=sections(evaluated, analyses),
        left_out="" if analyses else analyses_not_installed(evaluated),
        provenance=records,
        commands=tuple(
            line
            for run, content in records.items()
            for line in (command(content, run), *_measuring(place(run)))
        ),
    )


def write(runs: Sequence[Place], files: Sequence[Place], metrics: str | None = None) -> Document:
    """Writes the report of `runs` to files, each in the format its suffix names; returns it."""
    check_formats(files)
    content = document(runs, metrics)
    save(content, runs, files)
    return content


def check_formats(files: Sequence[Place]) -> None:
    """Raises `UsageError` for a file whose suffix names no format."""
    for file in files:
        if file.suffix.lstrip(".") not in {"html", *RENDER}:
            raise unknown("report format", file.suffix.lstrip("."), ["html", *RENDER])


def save(content: Document, runs: Sequence[Place], files: Sequence[Place]) -> None:
    """Writes a report to files, with the pictures that `runs` keep."""
    marks = {e.predictions.data: e.predictions.fingerprint for e in content.evaluated}
    for file in files:
        if file.suffix == ".html":
            text = render_html(content, lambda data, shot: _stored(runs, marks[data], shot))
        else:
            text = RENDER[file.suffix[1:]](content)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, text.encode())


def store_pictures(run: Place, sources: Sequence[Source], content: Document | None = None) -> None:
    """Keeps the pictures the report of a run shows, so that it can be made without the data.

    `content`: the report, where it is at hand. A picture that cannot be decoded is left out; the
    report says so.
    """
    content = content or document([run])
    tables = {e.predictions.data: e.predictions for e in content.evaluated}
    by_mark = {source.fingerprint: source for source in sources}
    for data, picture in sorted(set(_shown(content)), key=str):
        table = tables[data]
        path = _picture(run, table.fingerprint, picture)
        if path.is_file() or table.fingerprint not in by_mark:
            continue
        # rows of the source: those that a review left out are among them
        sealed = table if table.candidates is None else table.candidates
        row = int(np.flatnonzero(sealed.ids == picture.sample)[0])
        try:
            image = by_mark[table.fingerprint][row].image()
        except SampleError:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        size = SMALL if picture.small else {}
        write_file(path, thumbnail(marked(heated(image, picture.heat), picture.marks), **size))


def _shown(content: Document) -> Iterator[tuple[str, Picture]]:
    """Every picture of a report with the data that it is of."""
    for section in content.sections:
        for exhibit in section.exhibits:
            for picture in exhibit.pictures:
                yield exhibit.data, picture
        for figure in section.figures:
            for picture in figure.thumbnails:
                yield figure.data, picture


def command(content: Mapping[str, Any], out: str) -> str:
    """The command that repeats a run, from its record."""
    # a run of an earlier version does not have the keys that came later
    job = {**DEFAULT.record(), **content["job"]}
    explain = content.get("explain", {}).get("settings", {})
    if content["saved"]:
        words = ["steadyeye", "score", *map(_quoted, job["models"])]
    else:
        verb = "explain" if explain else "degrade" if job["operators"] else "run"
        words = ["steadyeye", verb, *(["--fast"] if job["fast"] else [])]
        words += [word for text in job["models"] for word in ("--model", _quoted(text))]
    data = [text for text in job["data"] if text != explain.get("reference")]
    words += [word for text in data for word in ("--data", _quoted(text))]
    words += [f"--{key} {_quoted(str(value))}" for key, value in explain.items() if value]
    for key in KEYS:
        if job[key] != getattr(DEFAULT, key):
            words += [f"--{key.replace('_', '-')}", _quoted(str(job[key]))]
    return " ".join([*words, "--out", _quoted(out)])


def _measuring(run: Place) -> tuple[str, ...]:
    """The command of the image pass where there are pm-sets: the next thing to do, or done."""
    measured = state(run)
    if measured is None:
        return ()
    line = f"steadyeye measure {_quoted(str(run))}"
    return (line,) if measured else (f"# {line}   adds: what changed when it broke",)


DEFAULT = Job()
KEYS = (
    *("operators", "levels", "seed", "metrics", "class_map", "reduce", "class_list"),
    *("on_error", "batch"),
)


def _quoted(text: str) -> str:
    return f'"{text}"' if any(c in text for c in " ()'*") else text


def _picture(run: Place, mark: str, picture: Picture) -> Place:
    upon = [str(each) for each in (picture.marks, picture.heat) if each]
    upon += ["small"] if picture.small else []
    shown = "\n".join([mark, picture.sample, *upon])
    name = hashlib.sha256(shown.encode()).hexdigest()[:24]
    return run / "pictures" / f"{name}.jpg"


def _stored(runs: Sequence[Place], mark: str, picture: Picture) -> bytes | None:
    for run in runs:
        path = _picture(run, mark, picture)
        if path.is_file():
            return path.read_bytes()
    return None
