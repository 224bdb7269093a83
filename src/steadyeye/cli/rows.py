"""The commands that write the results of runs for other tools: rows, model cards."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steadyeye.cli.options import ReportMetrics, Runs, check_suffix, command, join_options
from steadyeye.cli.terminal import say, show
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of

if TYPE_CHECKING:
    from steadyeye.core.predictions import Predictions
    from steadyeye.core.storage.files import Place


@command()
def rows(
    runs: Runs,
    out: Annotated[
        Path,
        typer.Option(help="File to write: .parquet, .arrow or .csv; or .json for COCO results."),
    ] = Path("rows.parquet"),
) -> None:
    """Write one row per sample for other tools: labels, prediction, tags, boxes."""
    from steadyeye.core.storage.files import place, write_output
    from steadyeye.predictions.sample_rows import build_table, encode_rows, join_tables
    from steadyeye.runner.collect import tables

    cells = tables([place(run) for run in runs])
    if out.suffix.lower() == ".json":
        _write_results(cells, out)
        return
    table = join_tables([build_table(predictions) for _, predictions in cells])
    write_output(out, encode_rows(table, out.suffix.lower()))
    columns = number_of(table.num_columns, "column")
    say(f"{number_of(table.num_rows, 'row')} of {columns}")
    show(str(out))


def _write_results(cells: Sequence[tuple["Place", "Predictions"]], out: Path) -> None:
    """Writes the detections of the only model and data as COCO's results."""
    from steadyeye.core.storage.files import write_output
    from steadyeye.predictions.coco_results import list_results

    if len(cells) != 1:
        several = ", ".join(f"{p.model} on {p.data}" for _, p in cells)
        raise UsageError(
            "a file of COCO results is for one model on one data set, and these runs have "
            f"{several}; write one file for each"
        )
    run, predictions = cells[0]
    if predictions.sweep or predictions.probe:
        raise UsageError(
            f"{predictions.model} on {predictions.data} has predictions of degraded or edited "
            "images, which have no ids in COCO's annotations; write these rows as .parquet, "
            ".arrow or .csv"
        )
    ids = _read_category_ids(run)
    results = list_results(predictions, ids)
    write_output(out, json.dumps(results).encode())
    say(
        f"{number_of(len(results), 'detection')}, categories numbered "
        f"{'as in the annotations' if ids else '1, 2, … in the order of the classes'}"
    )
    show(str(out))


def _read_category_ids(run: "Place") -> Sequence[int] | None:
    """The number of each class in the annotations; None if they have no numbers."""
    from steadyeye.core.abilities import Numbered
    from steadyeye.predictions.read import cells
    from steadyeye.predictions.shard_store import open_cell
    from steadyeye.runner.measure import is_of_python, rebuilt

    data = open_cell(cells(run)[0][0]).identity["data"]
    if is_of_python(data):
        return None
    source = rebuilt(run, data)
    return source.category_ids if isinstance(source, Numbered) else None


@command()
def card(
    runs: Runs,
    out: Annotated[Path, typer.Option(help="Markdown file to write.")] = Path("card.md"),
    metrics: ReportMetrics = None,
) -> None:
    """Write the numbers of runs as a block for a model card of the Hugging Face Hub."""
    from steadyeye.core.storage.files import place, write_output
    from steadyeye.report.model_card import render_card
    from steadyeye.runner.collect import collect

    check_suffix(str(out), "a model card", (".md",))
    evaluated = collect([place(run) for run in runs], join_options(metrics))
    write_output(out, render_card(evaluated).encode())
    show(str(out))
