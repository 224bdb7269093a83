"""Reading sealed predictions; what is not whole is refused, with what is wrong."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from steadyeye.core.errors import UsageError
from steadyeye.core.table import Predictions
from steadyeye.predictions.boxes import boxes_from_arrow, detections_from_arrow
from steadyeye.predictions.caveats import caveats
from steadyeye.predictions.cell import Cell, open_cell, sha256
from steadyeye.predictions.rows import ANSWERS, matrix, membership

AGAIN = "run the same command again to complete it"


def read(*folders: Path) -> Predictions:
    """The predictions of a sealed cell, or of the rounds of one, in their order.

    Raises `UsageError` for a cell that is not sealed, a shard that is missing or altered, and ids
    that occur twice.
    """
    tables = [sealed(folder) for folder in folders]
    return _predictions(open_cell(folders[0]), pa.concat_tables(tables))


def sealed(folder: Path) -> pa.Table:
    """The rows of a sealed cell as they were written.

    Raises `UsageError` where it is not sealed, or a shard is missing or altered.
    """
    if not (folder / "cell.json").is_file():
        raise UsageError(f"no predictions in '{folder}'; give the --out folder of a run")
    cell = open_cell(folder)
    if not cell.sealed:
        done = len(cell.finished())
        raise UsageError(f"'{folder}' has {done} of {cell.shards} shards; {AGAIN}")
    seal = json.loads((folder / "seal.json").read_text(encoding="utf-8"))
    return pa.concat_tables([_shard(folder, entry) for entry in seal["shards"]])


def cells(run: Path) -> list[tuple[Path, ...]]:
    """The cells of a run, in the order its job lists them, each as the folders of its rounds.

    Raises `UsageError` where there is no run.
    """
    path = run / "run.json"
    if not path.is_file():
        raise UsageError(f"no run in '{run}'; give the --out folder of `steadyeye run`")
    record = json.loads(path.read_text(encoding="utf-8"))
    rounds = record.get("rounds", {})
    return [
        tuple(run / "cells" / folder for folder in rounds.get(name, [name]))
        for name in record["cells"]
    ]


def _shard(folder: Path, entry: dict[str, Any]) -> pa.Table:
    path = folder / entry["file"]
    if not path.is_file():
        raise UsageError(f"the shard '{path}' is missing; {AGAIN}")
    if sha256(path) != entry["sha256"]:
        raise UsageError(
            f"the shard '{path}' is not what was sealed (its checksum differs); {AGAIN}"
        )
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def _predictions(cell: Cell, table: pa.Table) -> Predictions:
    ids = table["id"].to_pylist()
    if len(set(ids)) != len(ids):
        twice = [id_ for id_, times in Counter(ids).items() if times > 1]
        raise UsageError(
            f"{len(twice)} ids occur more than once in '{cell.folder}', first '{twice[0]}'; "
            "give every sample its own id"
        )
    identity = cell.identity
    tags = [name for name in table.column_names if name.startswith("tag:")]
    return Predictions(
        model=identity["model"]["name"],
        data=identity["data"]["name"],
        classes=tuple(identity["classes"]),
        model_classes=tuple(identity["model"]["classes"]),
        columns=tuple(identity["data"]["columns"]),
        ids=np.array(ids, dtype=np.str_),
        groups=np.array(table["group"].to_pylist(), dtype=np.str_),
        truth=membership(table["truth"], len(identity["classes"])),
        scores=matrix(table["scores"], np.float32),
        top=matrix(table["top"], np.int32),
        top_scores=matrix(table["top_scores"], np.float32),
        errors=np.array(table["error"].to_pylist(), dtype=np.str_),
        tags={name.removeprefix("tag:"): _tag(table[name]) for name in tags},
        fingerprint=identity["data"]["fingerprint"],
        sweep=identity.get("sweep", {}),
        boxes=boxes_from_arrow(table),
        detections=detections_from_arrow(table),
        stored={name: table[name].to_numpy() for name in ANSWERS if name in table.column_names},
        notes=(
            *identity["data"]["notes"],
            *identity["model"].get("notes", ()),
            *caveats(table, identity["model"]["classes"]),
        ),
    )


def _tag(column: pa.ChunkedArray) -> Any:
    if pa.types.is_string(column.type):
        return np.array(column.to_pylist(), dtype=np.str_)
    return column.to_numpy()
