"""Runs compared: which of them share data, and what their models' differences are."""

from collections.abc import Sequence
from dataclasses import replace

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions, samples
from steadyeye.core.spec import split
from steadyeye.core.storage.files import Place
from steadyeye.core.types import Evaluated
from steadyeye.report import build
from steadyeye.report.comparison.leaderboards import Boards, boards, finding, not_ranked
from steadyeye.report.render.document import Document
from steadyeye.runner import data_changes
from steadyeye.runner.collect import collect, tables
from steadyeye.runner.validate import metric, readable

COMPARING = ("comparison", "gains", "degradation_gains", "failures")
"""The analyses that a comparison consists of; `failures` gives it the pictures of a break."""


def group_shared(runs: Sequence[Place], metrics: str | None = None) -> list[list[Evaluated]]:
    """The models of the runs that were given the same samples, a list for each of the data.

    Samples are the same where the fingerprint of the data is. Data of one model alone are left out.
    Raises `UsageError` for runs without common data and for metrics that no model has.
    """
    if len(set(runs)) < len(runs):
        raise UsageError("a run is given twice; give every run once")
    named = tables(runs)
    _check_shared(named)
    for spec in split(metrics or ""):
        if not any(readable(metric(spec), table.columns) for _, table in named):
            raise UsageError(f"{spec} does not apply to any of these models; leave it out")
    found: dict[str, list[Evaluated]] = {}
    models = collect(runs, metrics)
    for one, mark in zip(models, samples([one.predictions for one in models]), strict=True):
        found.setdefault(mark, []).append(one)
    return [models for models in found.values() if len(models) > 1]


def write(runs: Sequence[Place], files: Sequence[Place]) -> None:
    """Writes the comparison of runs to files, each in the format its suffix names.

    Raises `UsageError` as `group_shared` and `rank_models` do.
    """
    models = group_shared(runs)
    build.save(document(rank_models(models), runs, models), runs, files)


def document(
    found: Sequence[Boards], runs: Sequence[Place], models: Sequence[Sequence[Evaluated]]
) -> Document:
    """The report of a comparison: `found` as `rank_models` gives it, of models that share data."""
    together = [one for several in models for one in several]
    content = build.build_report(runs, together, COMPARING)
    verdicts = tuple(finding(each.boards[0]) for each in found)
    return replace(content, title="Which model is better?", headline=(*verdicts, *content.headline))


def rank_models(models: Sequence[Sequence[Evaluated]]) -> list[Boards]:
    """The leaderboards of models on each of the data that `group_shared` gives.

    Raises `UsageError` where they share no metric that models can be compared on.
    """
    found = [each for each in map(boards, models) if each is not None]
    if not found:
        unlike = {
            not_ranked(name, each) for each in models for one in each for name in one.bound_metrics
        }
        why = " ".join(sorted(filter(None, unlike)))
        raise UsageError(why or "these models have no metric in common; give other --metrics")
    return found


def _check_shared(named: Sequence[tuple[Place, Predictions]]) -> None:
    """Raises `UsageError` unless every run has data that another model was given too."""
    marks = samples([table for _, table in named])
    for run in dict.fromkeys(run for run, _ in named):
        own = [mark for (each, _), mark in zip(named, marks, strict=True) if each == run]
        if not any(marks.count(mark) > 1 for mark in own):
            pairs = zip(named, marks, strict=True)
            told = "; ".join(dict.fromkeys(_describe_table(*each, mark) for each, mark in pairs))
            raise UsageError(
                f"'{run}' has no samples in common with another model ({told}{_why(run, named)}); "
                "compare models on the same data with the same parameters"
            )


def _describe_table(run: Place, table: Predictions, mark: str) -> str:
    return f"{run}: {number_of(len(table), 'sample')} of {table.data} [{mark}]"


def _why(run: Place, named: Sequence[tuple[Place, Predictions]]) -> str:
    """In which files the data of a run differ from those of another run of the same samples."""
    pairs = (
        (other, own, table)
        for own in (table for each, table in named if each == run)
        for other, table in named
        if other != run and table.fingerprint == own.fingerprint
    )
    found = (data_changes.difference(run, *pair) for pair in pairs)
    return next((f"; {text}" for text in found if text), "")
