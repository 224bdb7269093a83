"""What is said of a class map: how classes met, and which of the data's met none."""

from collections.abc import Sequence

from steadyeye.core.errors import list_texts
from steadyeye.core.format import number_of
from steadyeye.data.classes.class_map import ClassMap
from steadyeye.data.classes.class_mapping import proposals
from steadyeye.data.classes.matching import ALIAS, BELOW, LIST, NAME, OPEN, SYNSET

WORDS = {
    SYNSET: "by WordNet id",
    LIST: "by shipped list",
    ALIAS: "by alias",
    BELOW: "as a kind of the data's class",
    OPEN: "by Open Images' hierarchy",
    NAME: "by name alone",
}
NAMED = 40  # pairs that a line names
NAMED_IN_HEADLINE = 6


def lines(found: ClassMap) -> tuple[str, ...]:
    """How each class of a model met one of the data, a line a way, then those that met none."""
    said = []
    for way, words in WORDS.items():
        met = [i for i, each in enumerate(found.ways) if each == way]
        pairs = [_pair(found, index) for index in met]
        if pairs:
            said.append(f"{words}, {len(pairs):,}: {list_texts(pairs, NAMED)}")
    if found.missing:
        said.append(
            f"classes of the data without a class of the model, {len(found.missing):,}: "
            f"{list_texts(_add_proposals(found, found.missing), NAMED)}; "
            "--class-map can give them one"
        )
    return tuple(said)


def sentence(found: ClassMap, there: Sequence[str]) -> str | None:
    """Which classes that occur in the data have no class of the model; None: every one has."""
    lost = [name for name in found.missing if name in set(there)]
    if not lost:
        return None
    have = "has" if len(lost) == 1 else "have"
    return (
        f"of the {number_of(len(there), 'class')} that occur in the data {len(lost):,} {have} no "
        f"class of the model: {list_texts(_add_proposals(found, lost), NAMED_IN_HEADLINE)}"
    )


def _pair(found: ClassMap, index: int) -> str:
    own, other = found.source.names[index], found.target.names[found.destinations[index]]
    return (
        own if own == other else f"{own} = {other}" if _same(found, index) else f"{own} → {other}"
    )


def _same(found: ClassMap, index: int) -> bool:
    return found.ways[index] in (SYNSET, LIST, ALIAS, NAME)


def _add_proposals(found: ClassMap, missing: Sequence[str]) -> list[str]:
    near = proposals(found)
    return [f"{name} (nearest name: {near[name]})" if near.get(name) else name for name in missing]
