"""The predictions that a study is about, and their images."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steadyeye.core.errors import UsageError, list_texts
from steadyeye.core.predictions import Predictions
from steadyeye.core.storage.files import Place
from steadyeye.core.types import Source
from steadyeye.predictions.read import cells, read
from steadyeye.predictions.shard_store import open_cell
from steadyeye.runner import data_changes
from steadyeye.runner.measure import rebuilt


@dataclass(frozen=True, eq=False)
class RunCell:
    """Sealed `predictions` of one model on one data set of a run; `about`: record of the data."""

    run: Place
    predictions: Predictions
    about: Mapping[str, Any]

    def open_source(self) -> Source:
        """The source of the predictions.

        Raises `UsageError` if it cannot be opened or its files changed.
        """
        source = rebuilt(self.run, self.about)
        data_changes.refuse_changed(self.run, self.about)
        return source


def find_cell(run: Place, model: str | None = None, data: str | None = None) -> RunCell:
    """The predictions of a run on undegraded images, by names of model and data.

    None: the only one of the run. Raises `UsageError` if there are several, or none.
    """
    cells_by_names = {}
    for folders in cells(run):
        identity = open_cell(folders[0]).identity
        names = str(identity["model"]["name"]), str(identity["data"]["name"])
        if "sweep" not in identity:
            cells_by_names[names] = folders, identity
    matching = [n for n in cells_by_names if model in (None, n[0]) and data in (None, n[1])]
    if len(matching) == 1:
        folders, identity = cells_by_names[matching[0]]
        return RunCell(run, read(*folders), identity["data"])
    names_of = [
        f"--model '{model}' --data '{data}'" for model, data in (matching or cells_by_names)
    ]
    several = "several predictions" if matching else "no such predictions"
    if not names_of:
        raise UsageError(f"'{run}' has no predictions of images as they are; give another run")
    raise UsageError(f"'{run}' has {several}; choose one of {list_texts(names_of)}")
