"""What the review of the frames changed."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from steadyeye.charts.style import percent
from steadyeye.comparison.published import rows_beside
from steadyeye.core.pm_sets import PmSets, pm_sets
from steadyeye.core.sections import Section, Table
from steadyeye.core.types import Evaluated, needs
from steadyeye.subsets.display import figure, table
from steadyeye.subsets.losses import Loss, distance, loss
from steadyeye.subsets.losses import published as read

DATA = Path(__file__).resolve().parent / "data" / "published_review_impact.csv"
BEFORE, AFTER = "without review", "with review"
PUBLISHED = "Grey and brown: a fine-tuned ResNet-152, Shankar et al., Table 4."


@needs("truth", "group", "offset", "accepted")
def review_impact(evaluated: Sequence[Evaluated]) -> Section | None:
    """Accuracy, pm-k and drop with and without the frames that a review did not accept.

    Labels are the same in both: those of the data. None where nothing was rejected. Shankar et
    al., Table 4, which is shown beside; two of its printed drops, 14.4 and 8.9, are not the
    difference of the accuracies printed with them, which is shown here.
    """
    losses = [each for one in evaluated for each in _losses(one)]
    if not losses:
        return None
    first = next(one for one in evaluated if one.predictions.candidates is not None)
    told = [
        f"{before.model} drops by {percent(before.drop.value)} without the review and by "
        f"{percent(after.drop.value)} with it"
        for before, after in zip(losses[::2], losses[1::2], strict=True)
    ]
    shown = first.predictions
    others, source = rows_beside(shown, distance(first, pm_sets(shown)), published(), PUBLISHED)
    return Section(
        place=55,
        title=_title(losses),
        text=(
            "People threw out anchors that are mislabelled or unclear, and neighbours that no "
            "longer show what the anchor shows. What is left of the drop is the model's own: "
            f"{'; '.join(told[:3])}{'; …' if len(told) > 3 else ''}.",
        ),
        figures=(
            figure(
                "review_impact",
                [*losses, *others],
                "Accuracy and pm-k with and without the decisions of the review, with 95 % "
                f"intervals. {source}",
            ),
        ),
        tables=(table([*losses, *others], "review"), _counts(first)),
    )


@cache
def published() -> tuple[Loss, ...]:
    """Table 4 of the paper."""
    return read(DATA, "reviewed", {"no": BEFORE, "yes": AFTER}, "")


def _losses(one: Evaluated) -> list[Loss]:
    predictions, candidates = one.predictions, one.predictions.candidates
    if candidates is None or len(candidates) == len(predictions):
        return []
    sets = pm_sets(candidates)
    k = distance(one, sets)
    return [
        loss(predictions.model, BEFORE, sets, k),
        loss(predictions.model, AFTER, pm_sets(predictions), k),
    ]


def _title(losses: Sequence[Loss]) -> str:
    gone = sum((e.drop.value or 0.0) for e in losses[::2])
    left = sum((e.drop.value or 0.0) for e in losses[1::2])
    if gone == 0:
        return "Nothing breaks, with or without the review"
    return (
        "The drop outlives the review" if left >= gone / 2 else "The review takes most of the drop"
    )


def _counts(one: Evaluated) -> Table:
    assert one.predictions.candidates is not None
    before, after = pm_sets(one.predictions.candidates), pm_sets(one.predictions)

    def row(name: str, whole: int, kept: int) -> tuple[str, ...]:
        share = percent(kept / whole) if whole else "—"
        return name, f"{whole:,}", f"{kept:,}", share

    def neighbours(sets: PmSets) -> int:
        return int(sets.neighbours.sum())

    rows = (
        row("anchors", len(before), len(after)),
        row("neighbours", neighbours(before), neighbours(after)),
    )
    return Table("What the review left", ("frames", "candidates", "accepted", "share"), rows)
