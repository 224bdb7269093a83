"""The leaderboards of models that were given the same samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steadyeye.core import notebook
from steadyeye.core.errors import list_texts
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions, samples
from steadyeye.core.types import Evaluated
from steadyeye.report.comparison.ranking import Leaderboard, RankedModel, leaderboard
from steadyeye.report.comparison.wording import name_metric

FIRST = ("pm_k", "pm_k_map", "degraded_accuracy", "accuracy", "map")
"""The metrics that a comparison is told by, the first that is there."""


@dataclass(frozen=True)
class Boards:
    """The leaderboards of models on the same samples, the most telling metric first.

    `left_out`: samples that not all models predicted; none of the numbers counts them. `unlike`:
    what is to be known where the models choose among other numbers of classes, a sentence each.
    """

    data: str
    boards: tuple[Leaderboard, ...]
    left_out: int
    unlike: tuple[str, ...] = ()

    def __repr__(self) -> str:
        metrics = ", ".join(board.metric for board in self.boards)
        models = len(self.boards[0].standings) if self.boards else 0
        number = number_of(models, "model")
        return notebook.short("Boards", f"{number} on {self.data}: {metrics}")

    def _repr_html_(self) -> str:
        return "".join(board._repr_html_() for board in self.boards)

    @property
    def one_video(self) -> bool:
        """Whether all samples come from one video, of which alone the comparison then speaks."""
        pairs = (pair for board in self.boards for pair in board.pairs)
        return any("one video only" in pair.difference.method for pair in pairs)


def boards(evaluated: Sequence[Evaluated]) -> Boards | None:
    """A leaderboard for every metric that two or more of the models have.

    None unless two models hold the same samples (the same fingerprint) and share a metric.
    """
    if len(evaluated) < 2 or len(set(samples([one.predictions for one in evaluated]))) > 1:
        return None
    tables = [one.predictions for one in evaluated]
    if any(not np.array_equal(table.ids, tables[0].ids) for table in tables):
        return None
    names = list(dict.fromkeys(name for one in evaluated for name in one.bound_metrics))
    names.sort(key=lambda name: _place(name.partition("(")[0]))
    incomparable = [name for name in names if not_ranked(name, evaluated)]
    kept = (name for name in names if name not in incomparable)
    found = tuple(filter(None, (_board(name, evaluated) for name in kept)))
    lost = ~np.all([table.valid for table in tables], axis=0)
    unlike = (*(not_ranked(name, evaluated) for name in incomparable), *_chances(evaluated))
    return Boards(tables[0].data, found, int(lost.sum()), unlike) if found else None


def not_ranked(name: str, evaluated: Sequence[Evaluated]) -> str:
    """Why models are not ranked by a metric of their own answers; blank where they can be.

    Among fewer classes an answer has less to change to, whatever the model sees.
    """
    there = [
        one for one in evaluated if name in one.bound_metrics and one.bound_metrics[name].outcomes
    ]
    classes = {one.predictions.model: one.results[name].classes for one in there}
    if len(set(classes.values())) < 2 or any(one.bound_metrics[name].judged for one in there):
        return ""
    return (
        f"{name_metric(name)[:1].upper()}{name_metric(name)[1:]} is not ranked, because with fewer "
        f"classes a prediction changes less often: {_list_classes(classes)}."
    )


def _chances(evaluated: Sequence[Evaluated]) -> tuple[str, ...]:
    """What is to be known where models are judged by labels among other numbers of classes."""
    found: dict[str, int] = {}
    for one in evaluated:
        judged = [
            one.results[name].classes for name, asked in one.bound_metrics.items() if asked.judged
        ]
        for each in filter(None, judged):
            found[one.predictions.model] = each
    if len(set(found.values())) < 2:
        return ()
    return (
        f"The models have different numbers of classes to choose from: {_list_classes(found)}.",
    )


def _list_classes(classes: Mapping[str, int] | Mapping[str, int | None]) -> str:
    return list_texts([f"{model} {number or 0:,}" for model, number in classes.items()])


def common(tables: Sequence[Predictions]) -> list[Predictions]:
    """The tables with what one model did not predict left out for all."""
    valid = np.all([table.valid for table in tables], axis=0)
    why = np.asarray("no prediction from every compared model")
    return [
        table
        if np.array_equal(table.valid, valid)
        else replace(table, errors=np.where(table.valid & ~valid, why, table.errors))
        for table in tables
    ]


def _board(name: str, evaluated: Sequence[Evaluated]) -> Leaderboard | None:
    asked = [one.bound_metrics[name] for one in evaluated if name in one.bound_metrics]
    tables = common([one.predictions for one in evaluated])
    entries = [
        _entry(name, one, table)
        for one, table in zip(evaluated, tables, strict=True)
        if name in one.bound_metrics and one.bound_metrics[name].outcomes
    ]
    return leaderboard(name, entries, asked[0].lower)


def _entry(name: str, one: Evaluated, table: Predictions) -> RankedModel:
    asked = one.bound_metrics[name]
    assert asked.outcomes is not None, "only what can be compared"
    # another table than the results are of: some model lacks samples that this one predicted
    result = one.results[name] if table is one.predictions else asked.metric(table)
    return RankedModel(table.model, result, asked.outcomes(table))


def _place(metric: str) -> int:
    return FIRST.index(metric) if metric in FIRST else len(FIRST)
