"""The numbers of a report as JSON and CSV."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict

from steadyeye.core.types import Result
from steadyeye.report.render.document import Document

HEADER = ("model", "data", "metric", "value", "low", "high", "n", "interval", "classes")


def render_json(document: Document) -> str:
    """The headline, every result with its cells and notes, and the record of each run."""
    content = {
        "headline": list(document.headline),
        "results": [
            {
                "model": one.predictions.model,
                "data": one.predictions.data,
                "notes": list(one.predictions.notes),
                "metrics": {name: asdict(result) for name, result in one.results.items()},
            }
            for one in document.evaluated
        ],
        "runs": document.provenance,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def render_csv(document: Document) -> str:
    """One row a number, cells of cells too, under `HEADER`.

    Shares are 0…1. `classes`: among how many the answers were chosen that it is about.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    for one in document.evaluated:
        for result in one.results.values():
            for name, each in _flat(result.name, result):
                # the cells of a number are about the same answers
                numbers = (each.value, each.low, each.high, each.n, each.interval, result.classes)
                writer.writerow((one.predictions.model, one.predictions.data, name, *numbers))
    return out.getvalue()


def _flat(name: str, result: Result) -> Iterator[tuple[str, Result]]:
    yield name, result
    for cell in result.cells:
        yield from _flat(f"{name}, {cell.name}", cell)
