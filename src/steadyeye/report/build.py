"""Builds a report from sealed predictions: sections, pictures, and files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from steadyeye.core.disk_columns import return_free_memory
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.format import quote_word
from steadyeye.core.storage.files import Place, place, write_output
from steadyeye.core.storage.run_lock import check_out
from steadyeye.core.types import Evaluated, Source
from steadyeye.predictions.covariate_table import state
from steadyeye.report import pictures
from steadyeye.report.render.document import Document, title
from steadyeye.report.render.formats import render_csv, render_json, render_markdown
from steadyeye.report.render.headline import headline
from steadyeye.report.render.html import render_html
from steadyeye.report.sections import analyses_not_installed, sections
from steadyeye.runner.collect import collect, record
from steadyeye.runner.job import Job

if TYPE_CHECKING:
    from steadyeye.explain.run import Explained

EXPLAINED = ("confident_mistakes", "confusion_pairs")
"""The first analyses of a report of explanations."""

RENDER: Mapping[str, Callable[[Document], str]] = {
    "md": render_markdown,
    "json": render_json,
    "csv": render_csv,
}


def document(
    runs: Sequence[Place], metrics: str | None = None, more: Sequence[str] = ()
) -> Document:
    """The report of one or several runs, from their sealed predictions alone.

    `metrics`: a list of specs; None: those of each run's job. `more`: analyses beside the default
    ones.
    """
    evaluated = collect(runs, metrics)
    return_free_memory()
    return build_report(runs, evaluated, more=more)


def build_report(
    runs: Sequence[Place],
    evaluated: Sequence[Evaluated],
    analyses: Sequence[str] = (),
    more: Sequence[str] = (),
) -> Document:
    """The report of models from `runs`; `analyses`: the only ones, `more`: further ones."""
    records = {str(run): record(run) for run in runs}
    return Document(
        title=title(evaluated),
        headline=headline(evaluated),
        evaluated=evaluated,
        sections=sections(evaluated, analyses, more),
        left_out="" if analyses else analyses_not_installed(evaluated),
        provenance=records,
        commands=tuple(
            line
            for run, content in records.items()
            for line in (command(content, run), *_measuring(place(run)))
        ),
    )


def write(
    runs: Sequence[Place],
    files: Sequence[Place],
    metrics: str | None = None,
    more: Sequence[str] = (),
) -> Document:
    """Writes the report of `runs` to files, in the format of each suffix; returns the report."""
    check_formats(files)
    content = document(runs, metrics, more)
    save(content, runs, files)
    return content


def check_formats(files: Sequence[Place]) -> None:
    """Raises `UsageError` for a file whose suffix names no format, or that cannot be written."""
    for file in files:
        check_out(file.parent)
        if not file.suffix:
            raise UsageError(
                f"'{file}' does not say the format; write {file}.html, .md, .json or .csv"
            )
        if file.suffix.lstrip(".") not in {"html", *RENDER}:
            raise unknown("report format", file.suffix.lstrip("."), ["html", *RENDER])


def save(content: Document, runs: Sequence[Place], files: Sequence[Place]) -> None:
    """Writes a report to files, with the stored pictures of `runs`."""
    marks = {e.predictions.data: e.predictions.fingerprint for e in content.evaluated}
    for file in files:
        if file.suffix == ".html":
            text = render_html(
                content,
                lambda data, shot: pictures.stored_picture(runs, marks[data], shot),
                lambda data, film: pictures.stored_film(runs, marks[data], film),
            )
        else:
            text = RENDER[file.suffix[1:]](content)
        write_output(file, text.encode())


def store_pictures(run: Place, sources: Sequence[Source], content: Document | None = None) -> None:
    """Stores the pictures and films of a run's report, so that it no longer needs the data.

    `content`: the report, if it exists already.
    """
    content = content or document([run])
    tables = [model.predictions for model in content.evaluated]
    pictures.store(run, sources, tables, content.sections)


def explanation(explained: "Explained") -> Document:
    """The report of an explanation, from its sealed predictions.

    The confident mistakes come first.
    """
    rest = [name for name in explained.analyses if name not in EXPLAINED]
    analyses = (*(f"{name}(score={explained.score!r})" for name in EXPLAINED), *rest)
    content = build_report([explained.out], explained.evaluated, analyses)
    return replace(content, title="Explanation of confident mistakes", headline=explained.headline)


def write_explanation(explained: "Explained") -> Document:
    """Writes report.html and its pictures into the folder of an explanation; returns it."""
    content = explanation(explained)
    store_pictures(explained.out, explained.sources, content)
    save(content, [explained.out], [explained.out / "report.html"])
    return content


def command(content: Mapping[str, Any], out: str) -> str:
    """The command that repeats a run, from its record."""
    # a run of an earlier version does not have the keys that came later
    job = {**DEFAULT.record(), **content["job"]}
    explain = content.get("explain", {}).get("settings", {})
    if content["saved"]:
        words = ["steadyeye", "score", *map(quote_word, job["models"])]
    else:
        verb = "explain" if explain else "degrade" if job["operators"] else "run"
        words = ["steadyeye", verb, *(["--fast"] if job["fast"] else [])]
        words += [word for text in job["models"] for word in ("--model", quote_word(text))]
    data = [text for text in job["data"] if text != explain.get("reference")]
    words += [word for text in data for word in ("--data", quote_word(text))]
    words += [f"--{key} {quote_word(str(value))}" for key, value in explain.items() if value]
    for key in KEYS:
        if job[key] != getattr(DEFAULT, key):
            words += [f"--{key.replace('_', '-')}", quote_word(str(job[key]))]
    return " ".join([*words, "--out", quote_word(out)])


def command_over(verb: str, runs: Sequence[Place], options: Mapping[str, str | None]) -> str:
    """A command that reads finished runs, such as `compare`, with the options that have a value.

    `options`: name → value, None or "" if the option is left out.
    """
    words = ["steadyeye", verb, *(quote_word(str(run)) for run in runs)]
    words += [f"--{name} {quote_word(value)}" for name, value in options.items() if value]
    return " ".join(words)


def _measuring(run: Place) -> tuple[str, ...]:
    """The command that measures the frames of pm-sets, which is the next step or was run."""
    measured = state(run)
    if measured is None:
        return ()
    line = f"steadyeye measure {quote_word(str(run))}"
    return (line,) if measured else (f"# {line}   adds a section on what changed",)


DEFAULT = Job()
KEYS = (
    *("operators", "levels", "seed", "metrics", "class_map", "reduce", "class_list"),
    *("baseline", "on_error", "batch"),
)
