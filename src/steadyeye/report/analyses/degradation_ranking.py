"""Ranks models by their accuracy under degradation."""

from collections.abc import Sequence

import numpy as np

from steadyeye.core.format import format_share, percent
from steadyeye.core.report_types import Section, Table, Topic
from steadyeye.core.types import Evaluated, Result, needs
from steadyeye.degradation.curves import profiles, statistic
from steadyeye.report.comparison.leaderboards import RankedModel, leaderboard, rank


@needs("truth", "operator", "level", "profile")
def degradation_ranking(evaluated: Sequence[Evaluated]) -> Section | None:
    """Models ranked by accuracy over all operators and levels, on all images.

    A rank is 1 + the number of clearly better models, by the paired bootstrap over images (or
    videos), adjusted by Holm for all pairs. None for a single model, or if the models have
    different operators or images.

    Example with invented predictions:

        >>> from steadyeye.testing import example_models, example_sweep
        >>> print(degradation_ranking(example_models(example_sweep(), example_sweep(seed=1))).title)
        Models ranked by accuracy under degradation
    """
    if len(evaluated) < 2 or len({model.predictions.fingerprint for model in evaluated}) > 1:
        return None
    board = leaderboard("degraded_accuracy(images='all')", list(map(_entry, evaluated)))
    assert board is not None, "two models or more, each with a number"
    beside = {model.predictions.model: _beside(model) for model in evaluated}
    rows = [
        (
            rank(board, place),
            standing.model,
            format_share(standing.result),
            *beside[standing.model],
        )
        for place, standing in enumerate(board.standings)
    ]
    header = (
        "rank",
        "model",
        "accuracy under degradation, all images",
        "retained accuracy",
        "accuracy at level 0",
    )
    return Section(
        topic=Topic.COMPARED,
        place=12,
        title="Models ranked by accuracy under degradation",
        method=(
            "Ranked by the mean accuracy over all operators and levels, with the same images "
            "for every model. Rank = 1 + the number of models that are clearly better (paired "
            "bootstrap, p ≤ 0.05, adjusted by Holm for all pairs); = marks a shared rank. "
            "Retained accuracy counts the images that a model has right at level 0.",
        ),
        tables=(Table("Ranking under degradation", header, tuple(rows)),),
    )


def _entry(model: Evaluated) -> RankedModel:
    mean = statistic(model.predictions, model.predictions.right, "all")
    result = Result.of("degraded_accuracy", mean.interval())
    return RankedModel(model.predictions.model, result, mean)


def _beside(model: Evaluated) -> tuple[str, str]:
    """Retained accuracy, over the images right at level 0, and accuracy at level 0."""
    right = model.predictions.right
    first = right[profiles(model.predictions, images="all").row[0, 0]]
    retained = statistic(model.predictions, right, "right").value if first.any() else None
    return percent(retained), percent(float(np.mean(first)))
