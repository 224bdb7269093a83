"""The page that lists runs, with their numbers and states."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from steadyeye.core.format import format_metric, format_metric_ends
from steadyeye.report.comparison.metric_wording import place_metric
from steadyeye.report.render.html import open_templates, read_static
from steadyeye.report.render.sprites import embed_json

FINISHED = "finished"
UNFINISHED = "unfinished"
DAMAGED = "damaged"
OLDER = "older version"

TRAINING = "training"
MINING = "mining"
"""Kinds whose report only their own command writes, and which cannot be compared."""

HEADLINE = (
    *("map", "pm_k_map", "accuracy", "pm_k", "drop", "degraded_accuracy", "blink_rate"),
    *("flip_rate", "dwell_time", "self_consistency"),
)
"""Metrics in the order of their columns, those that only detectors have first; then by name."""

NO_REPORT = "no report yet; `steadyeye view RUN` writes it"

COLUMNS = 4
"""Number of columns if no metric is selected."""


@dataclass(frozen=True)
class Number:
    """One number that a run stores, with its 95 % interval (None: none) and its n."""

    metric: str
    value: float
    low: float | None
    high: float | None
    n: int
    unit: str


@dataclass(frozen=True)
class RunRow:
    """The numbers of one model on one source."""

    model: str
    data: str
    numbers: tuple[Number, ...]


@dataclass(frozen=True)
class ListedRun:
    """A run as its records describe it.

    `path`: of its folder below the one that is listed, with "/"; "." is that folder itself.
    `models`, `data`: as the job names them. `state`: one of the four above; `reason`: a line on it,
    or empty. `date`: its last write, seconds since 1970. `report`: whether report.html exists.
    `rows`: empty without stored numbers.
    """

    path: str
    kind: str
    models: tuple[str, ...]
    data: tuple[str, ...]
    state: str
    reason: str = ""
    date: float | None = None
    report: bool = False
    rows: tuple[RunRow, ...] = ()


def render_list(runs: Sequence[ListedRun], folder: str, base: str | None = None) -> str:
    """The page of the runs below `folder`, which sorts, filters and selects them.

    `base`: the relative path from a file that opens without a server to `folder`; None: the page of
    the server, which makes reports and comparisons on request.
    """
    page: str = (
        open_templates()
        .get_template("runs.html")
        .render(
            folder=folder,
            runs=len(runs),
            served=base is None,
            content=embed_json(describe_list(runs, folder, base)),
            style=Markup(read_static("report.css") + read_static("runs.css")),  # noqa: S704 - our own files
            script=Markup(read_static("runs.js")),  # noqa: S704
        )
    )
    return page


def render_problem(title: str, line: str) -> str:
    """A page with one line on a problem."""
    style = Markup(read_static("report.css") + read_static("runs.css"))  # noqa: S704
    template = open_templates().get_template("problem.html")
    page: str = template.render(title=title, line=line, style=style)
    return page


def describe_list(
    runs: Sequence[ListedRun], folder: str, base: str | None = None
) -> dict[str, Any]:
    """The list as plain values for the page and `index.json`; arguments as for `render_list`.

    One row per model and source of a run; a row without numbers if none are stored.
    """
    counts = Counter(n.metric for run in runs for row in run.rows for n in row.numbers)
    metrics = sorted(counts, key=lambda name: (place_metric(name, HEADLINE), name))
    return {
        "folder": folder,
        "served": base is None,
        "metrics": metrics,
        "columns": _columns([row for run in runs for row in run.rows], counts),
        "runs": [_run(run, base) for run in runs],
        "rows": [row for at, run in enumerate(runs) for row in _rows(at, run)],
    }


def _columns(rows: Sequence[RunRow], counts: Mapping[str, int]) -> list[str]:
    """The metrics to show if none is selected, in the order of `HEADLINE`.

    The first metric of each row, so that every kind of run shows a number, then the others.
    """
    ranked = sorted(counts, key=lambda name: (place_metric(name, HEADLINE), -counts[name], name))
    firsts: Counter[str] = Counter()
    for row in rows:
        metrics = {number.metric for number in row.numbers}
        firsts.update([name for name in ranked if name in metrics][:1])
    chosen = [name for name, _ in firsts.most_common(COLUMNS)]
    chosen += [name for name in ranked if name not in chosen][: COLUMNS - len(chosen)]
    return [name for name in ranked if name in chosen]


def _run(run: ListedRun, base: str | None) -> dict[str, Any]:
    return {
        "path": run.path,
        "kind": run.kind,
        "date": run.date,
        "state": run.state,
        "reason": run.reason or ("" if run.report or base is None else NO_REPORT),
        "link": _link(run, base),
        "comparable": _is_comparable(run),
    }


def _is_comparable(run: ListedRun) -> bool:
    return run.state in (FINISHED, OLDER) and run.kind not in (TRAINING, MINING)


def _link(run: ListedRun, base: str | None) -> str | None:
    """The link to the report of a run; None if there is none and it cannot be made."""
    if base is None:
        ready = run.report or _is_comparable(run)
        return f"report?run={quote(run.path, safe='')}" if ready else None
    if not run.report:
        return None
    return quote("/".join(part for part in (base, run.path, "report.html") if part != "."))


def _rows(at: int, run: ListedRun) -> list[dict[str, Any]]:
    if not run.rows:
        models, data = (", ".join(names) for names in (run.models, run.data))
        return [{"run": at, "model": models, "data": data, "numbers": {}}]
    return [
        {
            "run": at,
            "model": row.model,
            "data": row.data,
            "numbers": {number.metric: _number(number) for number in row.numbers},
        }
        for row in run.rows
    ]


def _number(number: Number) -> Mapping[str, Any]:
    bar = number.unit == "share" and number.low is not None and number.high is not None
    return {
        "value": number.value,
        "shown": format_metric(number.metric, number.value, number.unit),
        "span": format_metric_ends(number.metric, number.low, number.high, number.unit),
        "n": number.n,
        **({"bar": [number.low, number.high]} if bar else {}),
    }
