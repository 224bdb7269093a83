"""Table 1 of Shankar et al. from the decisions: reviewed, accepted, labels updated."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from steadyeye.core.stats.intervals import clopper_pearson
from steadyeye.data.annotations.review_set import SetFolder
from steadyeye.review.protocol.plan import ReviewPlan
from steadyeye.review.results.counting import Counted, count_stages, reviewed_images
from steadyeye.review.results.verdicts import box_verdicts


@dataclass(frozen=True)
class CountedLine:
    """A line of the table. `reviewed`: None where only what changed is counted.

    `low`, `high`: the 95 % interval of the share accepted, Clopper–Pearson over what was reviewed;
    None where nothing was.
    """

    item: str
    reviewed: int | None
    accepted: int
    low: float | None = None
    high: float | None = None


def table_one(connection: Connection, folder: SetFolder, plan: ReviewPlan) -> Sequence[CountedLine]:
    """The table of a set, over what is decided so far.

    "Do Image Classifiers Generalize Across Time?", Table 1. `anchor labels updated`: accepted
    anchors whose labels the review changed. Gold questions, pairs of rejected anchors and those
    across a scene cut are not counted; see `counting`, which the dashboard reads too.
    """
    stages = {each.stage: each for each in count_stages(connection, folder, plan)}
    if folder.content.get("kind") == "boxes":
        return _of_boxes(connection, folder, plan, stages.get("classification"))
    lines = []
    if "anchors" in stages:
        anchors = stages["anchors"]
        lines += [
            _line("anchor frames", anchors.reviewed, anchors.accepted),
            CountedLine("anchor labels updated", None, anchors.updated or 0),
        ]
    if "pairs" in stages:
        lines.append(_line("frame pairs", stages["pairs"].reviewed, stages["pairs"].accepted))
    return lines


def _of_boxes(
    connection: Connection, folder: SetFolder, plan: ReviewPlan, objects: Counted | None
) -> Sequence[CountedLine]:
    found = box_verdicts(connection, folder, plan)
    images = [found[image] for image in reviewed_images(connection, plan, found)]
    lines = [_line("suggested boxes", objects.reviewed, objects.accepted)] if objects else []
    lines.append(_line("images", len(images), sum(each.accepted for each in images)))
    return [*lines, CountedLine("boxes", None, sum(len(each.boxes) for each in images))]


def _line(item: str, reviewed: int, accepted: int) -> CountedLine:
    interval = clopper_pearson(accepted, reviewed) if reviewed else (None, None)
    return CountedLine(item, reviewed, accepted, *interval)
