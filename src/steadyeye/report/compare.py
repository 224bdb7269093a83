"""Compares runs: finds shared data, and the differences of their models."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions, samples
from steadyeye.core.report_types import Topic
from steadyeye.core.spec import split
from steadyeye.core.storage.files import Place
from steadyeye.core.types import Evaluated
from steadyeye.report import build
from steadyeye.report.comparison.deployment import compare_deployed, describe
from steadyeye.report.comparison.leaderboards import Boards, boards, finding, not_ranked
from steadyeye.report.render.document import Document
from steadyeye.runner import data_changes
from steadyeye.runner.collect import ask, evaluate_tables, tables
from steadyeye.runner.validate import metric, readable

COMPARING = ("comparison", "gains", "degradation_gains", "failures")
"""The analyses of a comparison; `failures` adds the pictures of a break."""


def group_shared(runs: Sequence[Place], metrics: str | None = None) -> list[list[Evaluated]]:
    """The models of the runs with the same samples, one list per data set.

    Samples are the same if the fingerprint of the data is. Data of a single model are left out.
    Raises `UsageError` for runs without common data and for metrics that no model has.
    """
    return group_tables(tables(runs), metrics)


def group_tables(
    pairs: Sequence[tuple[Place, Predictions]], metrics: str | None = None
) -> list[list[Evaluated]]:
    """As `group_shared`, from the output of `tables`."""
    _check_shared(pairs)
    for spec in split(metrics or ""):
        if not any(readable(metric(spec), table.columns) for _, table in pairs):
            raise UsageError(f"{spec} does not apply to any of these models; leave it out")
    unranked = list_unranked(metrics)
    if unranked and len(unranked) == len(split(metrics or "")):
        raise UsageError(f"{unranked[0].removesuffix('.')}; give other --metrics")
    groups: dict[str, list[Evaluated]] = {}
    models = evaluate_tables(pairs, metrics)
    for model, mark in zip(models, samples([model.predictions for model in models]), strict=True):
        groups.setdefault(mark, []).append(model)
    return [models for models in groups.values() if len(models) > 1]


def list_unranked(metrics: str | None) -> list[str]:
    """The requested metrics by which models are not ranked, one sentence each."""
    return [
        f"{spec} is not compared: models have no paired difference in it."
        for spec in split(metrics or "")
        if ask(spec).outcomes is None
    ]


def write(runs: Sequence[Place], files: Sequence[Place]) -> None:
    """Writes the comparison of runs to files, in the format of each suffix.

    Raises `UsageError` as `group_shared` and `rank_models` do.
    """
    models = group_shared(runs)
    content = document(rank_models(models), runs, models)
    build.save(add_command(content, runs), runs, files)


def describe_costs(models: Sequence[Sequence[Evaluated]], original: str) -> list[str]:
    """The cost of each model against the one named `original`, one text per model and data.

    `models`: of `group_shared`. Raises `UsageError` if no data has that model.
    """
    of_data = [
        several for several in models if original in [model.predictions.model for model in several]
    ]
    return [
        describe(deployment)
        for several in of_data or models[:1]
        for deployment in compare_deployed(several, original)
    ]


def document(
    rankings: Sequence[Boards],
    runs: Sequence[Place],
    models: Sequence[Sequence[Evaluated]],
    costs: Sequence[str] = (),
) -> Document:
    """The report of a comparison; `rankings`: of `rank_models`, for models on one data set.

    `costs`: of `describe_costs`, shown first.
    """
    together = [model for several in models for model in several]
    content = build.build_report(runs, together, COMPARING)
    findings = [(item.data, finding(item.boards[0])) for item in rankings]
    verdicts = [text if len(findings) == 1 else f"{data}: {text}" for data, text in findings]
    return replace(
        content,
        title="Which model is better?",
        headline=(*costs, *verdicts, *content.headline),
        leading=Topic.COMPARED,
    )


def add_command(
    content: Document, runs: Sequence[Place], options: Mapping[str, str | None] | None = None
) -> Document:
    """The report of a comparison with the command that repeats it, after those of its runs.

    `options`: those of `steadyeye compare`, as `build.command_over` takes them.
    """
    line = build.command_over("compare", runs, options or {})
    return replace(content, commands=(*content.commands, line))


def rank_models(models: Sequence[Sequence[Evaluated]]) -> list[Boards]:
    """The leaderboards of models on each data set of `group_shared`.

    Raises `UsageError` if they share no metric by which models can be compared.
    """
    return [ranked for _, ranked in rank_groups(models)]


def rank_groups(
    models: Sequence[Sequence[Evaluated]],
) -> list[tuple[Sequence[Evaluated], Boards]]:
    """The models on each data set that can be ranked, with their leaderboards.

    Raises `UsageError` as `rank_models` does.
    """
    pairs = [(item, ranked) for item in models if (ranked := boards(item)) is not None]
    if not pairs:
        unlike = {
            not_ranked(name, item)
            for item in models
            for model in item
            for name in model.bound_metrics
        }
        why = " ".join(sorted(filter(None, (*unlike, *map(_explain_errors, models)))))
        raise UsageError(why or "these models have no metric in common; give other --metrics")
    return pairs


def _explain_errors(models: Sequence[Evaluated]) -> str:
    """That no sample has a prediction of every model; blank where some have."""
    tables = [model.predictions for model in models]
    if any(not np.array_equal(table.ids, tables[0].ids) for table in tables):
        return (
            f"a search (--fast) tests each model on images of {tables[0].data} and levels of its "
            "own, so models are not compared; run `steadyeye degrade` without --fast"
        )
    if len(tables) < 2 or np.all([table.valid for table in tables], axis=0).any():
        return ""
    counts = [f"{table.model} {int(table.valid.sum()):,} of {len(table):,}" for table in tables]
    return (
        f"no sample of {tables[0].data} was predicted by every model ({', '.join(counts)}); leave "
        "out, or run again, the models that predicted few"
    )


def _check_shared(tables_of_runs: Sequence[tuple[Place, Predictions]]) -> None:
    """Raises `UsageError` unless every run shares data with another model."""
    if len(tables_of_runs) == 1:
        run, table = tables_of_runs[0]
        raise UsageError(
            f"'{run}' has one model, {table.model}; give a run of another model on the same data"
        )
    marks = samples([table for _, table in tables_of_runs])
    for run in dict.fromkeys(run for run, _ in tables_of_runs):
        own = [mark for (other, _), mark in zip(tables_of_runs, marks, strict=True) if other == run]
        if not any(marks.count(mark) > 1 for mark in own):
            pairs = zip(tables_of_runs, marks, strict=True)
            texts = (
                f"{place}: {number_of(len(table), 'sample')} of {table.data} [{mark}]"
                for (place, table), mark in pairs
            )
            raise UsageError(
                f"'{run}' has no samples in common with another model "
                f"({'; '.join(dict.fromkeys(texts))}{_why(run, tables_of_runs)}); "
                "compare models on the same data with the same parameters"
            )


def _why(run: Place, tables_of_runs: Sequence[tuple[Place, Predictions]]) -> str:
    """Why the data of a run differ from those of another run with the same samples: their files."""
    pairs = (
        (other, own, table)
        for own in (table for place, table in tables_of_runs if place == run)
        for other, table in tables_of_runs
        if other != run and table.fingerprint == own.fingerprint
    )
    differences = (data_changes.difference(run, *pair) for pair in pairs)
    return next((f"; {text}" for text in differences if text), "")
