"""The impact of a review on the numbers."""

from collections.abc import Sequence
from pathlib import Path

from steadyeye.core.claims import Claim, above, below, every, first
from steadyeye.core.format import format_unsigned_points, list_some, number_of, percent
from steadyeye.core.pm_sets import pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Section, Table, Topic
from steadyeye.core.review_filter import select_accepted
from steadyeye.core.types import Evaluated, needs
from steadyeye.report.subsets import Loss, PublishedLosses, distance, loss, show_losses

DATA = Path(__file__).resolve().parent / "data" / "published_review_impact.csv"
BEFORE, AFTER = "without review", "with review"
PUBLISHED = PublishedLosses(
    DATA,
    "reviewed",
    {"no": BEFORE, "yes": AFTER},
    "",
    "Grey and brown: a fine-tuned ResNet-152, Shankar et al., Table 4.",
)


@needs("truth", "group", "offset", "accepted")
def review_impact(evaluated: Sequence[Evaluated]) -> Section | None:
    """Accuracy, pm-k and drop with and without the frames that a review did not accept.

    Both use the labels of the data. None if nothing was rejected. Shankar et al., Table 4, is shown
    for comparison; two of its printed drops, 14.4 and 8.9, differ from the difference of the
    printed accuracies, which is shown here.
    """
    losses = [row for model in evaluated for row in _losses(model)]
    if not losses:
        return None
    reviewed = next(model for model in evaluated if _both(model.predictions) is not None)
    parts = [
        f"{before.model}: {format_unsigned_points(before.drop.value)} without the review, "
        f"{format_unsigned_points(after.drop.value)} with it"
        for before, after in zip(losses[::2], losses[1::2], strict=True)
    ]
    caption = "Accuracy and pm-k with and without the review's decisions, with 95 % intervals."
    bars, listing = show_losses(reviewed, losses, PUBLISHED, "review_impact", (caption, "review"))
    claim = first(_claims(losses))
    return Section(
        topic=Topic.SURE,
        place=55,
        title=claim.text if claim else _question(losses),
        claim=claim,
        text=(
            "The review removed anchors with wrong or unclear labels, and neighbours that no "
            "longer show what the anchor shows. Drop: "
            f"{list_some(parts)}.",
        ),
        figures=(bars,),
        tables=(listing, _counts(reviewed)),
    )


def _both(predictions: Predictions) -> tuple[Predictions, Predictions] | None:
    """The table without and with the review; None if the review changes nothing."""
    if "sampled" in predictions.tags:
        before, after = predictions, select_accepted(predictions)
    else:
        whole = predictions.candidates
        before, after = predictions if whole is None else whole, predictions
    return None if len(before) == len(after) else (before, after)


def _losses(model: Evaluated) -> list[Loss]:
    both = _both(model.predictions)
    if both is None:
        return []
    before, after = map(pm_sets, both)
    k = distance(model, before)
    return [
        loss(model.predictions.model, BEFORE, before, k),
        loss(model.predictions.model, AFTER, after, k),
    ]


def _claims(losses: Sequence[Loss]) -> list[Claim]:
    """The claims of the title for every model; the less favourable end of both numbers counts."""
    texts = "Most of the drop remains after the review", "The review removes most of the drop"
    remains, goes = [], []
    for before, after in zip(losses[::2], losses[1::2], strict=True):
        low, high = before.drop.low, before.drop.high
        remains.append(above(texts[0], after.drop, 1.0 if high is None else high / 2))
        goes.append(below(texts[1], after.drop, 0.0 if low is None else low / 2))
    return [every(texts[0], remains), every(texts[1], goes)]


def _question(losses: Sequence[Loss]) -> str:
    if not any(row.drop.value for row in losses):
        n = losses[0].drop.n
        return f"None of {number_of(n, 'set')} breaks, with or without the review"
    return "How much of the drop remains after the review?"


def _counts(model: Evaluated) -> Table:
    both = _both(model.predictions)
    assert both is not None
    before, after = map(pm_sets, both)

    def row(name: str, whole: int, accepted: int) -> tuple[str, ...]:
        share = percent(accepted / whole) if whole else "—"
        return name, f"{whole:,}", f"{accepted:,}", share

    neighbours = [int(sets.neighbours.sum()) for sets in (before, after)]
    rows = (row("anchors", len(before), len(after)), row("neighbours", *neighbours))
    header = ("frames", "candidates", "accepted", "share")
    return Table("Frames accepted by the review", header, rows)
