"""Items whose answer is known: gold questions."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select, update

from steadyeye.core.errors import UsageError, shorten
from steadyeye.review.database import assignments, items
from steadyeye.review.protocol import counts
from steadyeye.review.workflow import quality


def set_gold(connection: Connection, stage: str, key: str, answer: Mapping[str, Any]) -> int:
    """The id of an item, made a gold question: everybody is asked, `answer` is what holds of it.

    Raises `UsageError` for a key that the stage does not have.
    """
    same = (items.c.stage == stage) & (items.c.key == key)
    item = connection.execute(select(items.c.id).where(same)).scalar()
    if item is None:
        raise UsageError(
            f"set.json: review.gold.answers.{stage}: no item '{shorten(key)}' in this stage; give "
            "an id of the set that is reviewed (no neighbour across a scene cut)"
        )
    change = update(items).where(items.c.id == item)
    connection.execute(change.values(gold=dict(answer), state="open"))
    if stage in ("anchors", "classification"):
        unit = connection.execute(select(items.c.unit).where(items.c.id == item)).scalar_one()
        counts.write_parents(connection, stage, unit)
    elif stage == "pairs":
        counts.write_pair(connection, key)
    people = select(assignments.c.reviewer).where(assignments.c.item == item)
    for reviewer in connection.execute(people).scalars().all():
        quality.write_marks(connection, reviewer)
    return int(item)
