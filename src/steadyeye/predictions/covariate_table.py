"""Measurements of images: stored as Arrow rows next to the predictions, and joined to them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.storage.files import Place
from steadyeye.metrics.covariates.measures import COLUMNS
from steadyeye.predictions.read import cells, read_sealed
from steadyeye.predictions.schema import encode_numbers, encode_texts, numbers
from steadyeye.predictions.shard_store import open_cell

if TYPE_CHECKING:
    # imports OpenCV, which a report does not need
    from steadyeye.metrics.covariates.pm_set_measures import MeasuredFrame


def folder_of(run: Place, name: str, fingerprint: str) -> Place:
    """The folder of a run with the measurements of a source."""
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
    return run / "measurements" / f"{safe}-{fingerprint[:8]}"


def to_arrow(rows: "Sequence[MeasuredFrame]") -> pa.Table:
    """The Arrow table of a shard: id, error and the measures, NaN if missing."""
    nan = float("nan")
    columns = {
        name: encode_numbers(np.array([row.values.get(name, nan) for row in rows]), pa.float64())
        for name in COLUMNS
    }
    ids = encode_texts([row.id for row in rows])
    errors = encode_texts([row.error for row in rows])
    return pa.table({"id": ids, "error": errors, **columns})


def is_measured(run: Place, predictions: Predictions) -> bool:
    """Whether a run has complete measurements of the data of the predictions."""
    return (_folder(run, predictions) / "seal.json").is_file()


def join_measures(
    runs: Sequence[Place],
    predictions: Predictions,
    read_rows: Callable[[Place], pa.Table] = read_sealed,
) -> Predictions:
    """The predictions, with measurements from any of the runs added as tags and columns.

    Unchanged if nothing is sealed. `linf`, `motion` and so on are then columns that an analysis can
    need; a note gives the number of frames that could not be measured, and the reason for the
    first. `read_rows`: reads the rows of a sealed folder; it may cache them for several models.
    """
    holders = [run for run in runs if is_measured(run, predictions)]
    if not holders:
        return predictions
    folder = _folder(holders[0], predictions)
    table = read_rows(folder)
    row_of = {id_: row for row, id_ in enumerate(table["id"].to_pylist())}
    if len(row_of) != len(predictions) or any(id_ not in row_of for id_ in predictions.ids):
        raise UsageError(
            f"'{folder}' holds measurements of other frames; delete it and measure again"
        )
    rows = np.array([row_of[id_] for id_ in predictions.ids.tolist()], dtype=np.intp)
    tags = {name: numbers(table[name])[rows] for name in COLUMNS}
    # a source without boxes has no changes of them
    known = {name: values for name, values in tags.items() if np.isfinite(values).any()}
    errors = [error for error in table["error"].to_pylist() if error]
    return replace(
        predictions,
        tags={**predictions.tags, **known},
        columns=(*predictions.columns, *known),
        notes=(*predictions.notes, *_note(errors)),
    )


def _note(errors: Sequence[str]) -> tuple[str, ...]:
    if not errors:
        return ()
    return (f"{number_of(len(errors), 'frame')} not completely measured, first: {errors[0]}",)


def state(run: Place) -> bool | None:
    """Whether all pm-sets of a run are measured; None if it has none."""
    measured = []
    for folders in cells(run):
        identity = open_cell(folders[0]).identity
        if "sweep" not in identity and {"group", "offset"} <= set(identity["data"]["columns"]):
            folder = folder_of(run, identity["data"]["name"], identity["data"]["fingerprint"])
            measured.append((folder / "seal.json").is_file())
    return all(measured) if measured else None


def _folder(run: Place, predictions: Predictions) -> Place:
    return folder_of(run, predictions.data, predictions.fingerprint)
