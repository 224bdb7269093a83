"""The numbers of runs as a block of a model card for the Hugging Face Hub."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.provenance import provenance
from steadyeye.core.result_lookup import limit
from steadyeye.core.types import Evaluated, Result
from steadyeye.report.render.document import interval_of, value_of

LISTED = 5
"""Most levels that are listed one by one."""

TASKS = {True: "object-detection", False: "image-classification"}


def render_card(evaluated: Sequence[Evaluated]) -> str:
    """Front matter with `model-index`, and a table of the same numbers in Markdown, with notes.

    One model each, with a result for each of its data sets. Shares are in 0…1 in the front matter;
    its metrics have no field for an interval, which is in the name of each metric and in the table,
    with its limits. The notes say how images were degraded, and what was left out. Raises
    `UsageError` if no metric has a value.
    """
    if not any(_list_results(entry) for entry in evaluated):
        raise UsageError("no metric has a value; a model card needs one")
    models: dict[str, list[Evaluated]] = {}
    for entry in evaluated:
        models.setdefault(entry.predictions.model, []).append(entry)
    index = [
        {"name": model, "results": [_describe_data(entry) for entry in entries]}
        for model, entries in models.items()
    ]
    front = yaml.safe_dump(
        {"model-index": index}, allow_unicode=True, sort_keys=False, width=10_000
    )
    rows = [row for entry in evaluated for row in _list_rows(entry)]
    notes = [f"- {note}" for entry in evaluated for note in _list_notes(entry)]
    made_by = provenance()
    return "\n".join(
        [
            f"---\n{front}---\n",
            "## Steadiness\n",
            "| model | data | metric | value | 95 % interval | n |",
            "|---|---|---|---|---|---|",
            *(f"| {' | '.join(map(_escape, row))} |" for row in rows),
            "",
            *([*notes, ""] if notes else []),
            f"Measured with steadyeye {made_by['steadyeye']} ({made_by['commit']}).",
            "",
        ]
    )


def _describe_data(entry: Evaluated) -> Mapping[str, Any]:
    predictions = entry.predictions
    return {
        "task": {"type": TASKS[predictions.detections is not None]},
        "dataset": {"name": predictions.data, "type": predictions.data},
        "metrics": [
            {"type": result.name.partition("(")[0], "name": _name(result), "value": result.value}
            for result in _list_results(entry)
        ],
    }


def _list_results(entry: Evaluated) -> list[Result]:
    return [result for result in entry.results.values() if result.value is not None]


def _name(result: Result) -> str:
    """The metric with its interval and n, because the index has no field for them."""
    known = [f"n = {result.n:,}"]
    if result.low is not None or result.high is not None:
        known.insert(0, f"95 % interval {interval_of(result)}")
    if result.classes is not None:
        known.append(f"among {number_of(result.classes, 'class')}")
    if limit(result.interval):
        known.append(limit(result.interval))
    return f"{result.name} ({', '.join(known)})"


def _list_rows(entry: Evaluated) -> list[tuple[str, ...]]:
    predictions = entry.predictions
    return [
        (
            predictions.model,
            predictions.data,
            result.name,
            value_of(result),
            ", ".join(filter(None, (interval_of(result), limit(result.interval)))),
            f"{result.n:,}",
        )
        for result in _list_results(entry)
    ]


def _list_notes(entry: Evaluated) -> list[str]:
    """Notes on the numbers and on samples left out, each once."""
    predictions = entry.predictions
    notes = dict.fromkeys(note for result in _list_results(entry) for note in result.notes)
    every = [*_describe_sweep(predictions.sweep.get("levels", {})), *notes]
    return [f"{_escape(f'{predictions.model} on {predictions.data}')}: {note}." for note in every]


def _describe_sweep(levels: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """How images were degraded: one text for operators with the same levels."""
    operators: dict[tuple[int, ...], list[str]] = {}
    for operator, steps in levels.items():
        operators.setdefault(tuple(step for step in steps if step), []).append(operator)
    for steps, names in operators.items():
        text = ", ".join(map(str, steps))
        if len(steps) > LISTED:
            text = f"{steps[0]} … {steps[-1]}, {len(steps)} of them"
        yield f"images degraded by {', '.join(names)}; levels {text}"


def _escape(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")
