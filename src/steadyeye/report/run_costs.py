"""Inference times of models, from the logs of their runs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steadyeye.core.predictions import Predictions
from steadyeye.core.storage.files import Place
from steadyeye.predictions.json_record import CELL, read_record
from steadyeye.predictions.read import cells

Names = dict[tuple[str, str], tuple[str, str]]
"""Fingerprints of data and model → their names, within one run."""


@dataclass(frozen=True)
class ModelCost:
    """The time that a model took on one data set, as one run measured it.

    `model`, `data`: their names, made unique as in `collect`; `mark`: the model's fingerprint.
    `images`: number of inferred images, without those from the cache. `infer`: seconds of
    inference, summed over threads; `wall`: elapsed seconds, None if some images came from the
    cache. `date`: seconds since 1970.
    """

    model: str
    mark: str
    data: str
    run: str
    images: int
    infer: float
    wall: float | None
    threads: int | None
    device: str
    runtime: str
    date: float | None

    @property
    def per_image(self) -> float:
        """Milliseconds of inference per image and thread."""
        return 1000 * self.infer / self.images

    @property
    def rate(self) -> float | None:
        """Images per second with decoding and writing, None if not recorded."""
        return self.images / self.wall if self.wall else None


def read_costs(tables_by_run: Sequence[tuple[Place, Predictions]]) -> list[ModelCost]:
    """The recorded times, one for each cell with inferred images.

    `tables_by_run`: all cells of the runs, from `collect.tables`. Cells that were resumed, came
    from the cache as a whole, have no log, or whose model has no fingerprint have no recorded time
    and are left out.
    """
    names: dict[Place, Names] = {}
    for run, table in tables_by_run:
        own = names.setdefault(run, {})
        own[table.fingerprint, table.model_mark] = table.data, table.model
    return [cost for run, own in names.items() for cost in _read_run(run, own)]


def _read_run(run: Place, names: Names) -> Iterator[ModelCost]:
    folders = {folder.name: folder for rounds in cells(run) for folder in rounds}
    threads = None
    for event in _read_events(run):
        if event.get("event") == "run":
            threads = event.get("workers")
        folder = folders.get(str(event.get("cell")))
        if event.get("event") == "cell" and folder is not None and not event.get("found"):
            cost = _read_cost(run, folder, event, threads, names)
            if cost is not None:
                yield cost


def _read_cost(
    run: Place, folder: Place, event: Mapping[str, Any], threads: int | None, names: Names
) -> ModelCost | None:
    infer = event.get("stages", {}).get("infer", 0.0)
    hits = event.get("hits", 0)
    images = event.get("rows", 0) - hits - event.get("errors", 0)
    if images <= 0 or not infer:
        return None
    cell = read_record(folder / "cell.json", CELL, ("model", "data"))
    recipe = cell["model"].get("recipe", {})
    runtime = ", ".join(str(recipe[key]) for key in ("runtime", "precision") if key in recipe)
    mark = cell["model"]["fingerprint"]
    if not mark:
        return None
    data, model = names[cell["data"]["fingerprint"], mark]
    return ModelCost(
        model=model,
        mark=mark,
        data=data,
        run=str(run),
        images=images,
        infer=infer,
        wall=None if hits else event.get("seconds"),
        threads=threads,
        device=str(event.get("gpu") or "CPU"),
        runtime=runtime,
        date=event.get("time"),
    )


def _read_events(run: Place) -> list[dict[str, Any]]:
    """The undamaged lines of a run's log; empty without a log."""
    try:
        with (run / "log.jsonl").open("rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    events = []
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            events.append(event)
    return events
