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


def lines(mapping: ClassMap) -> tuple[str, ...]:
    """How each class of a model met one of the data, a line a way, then those that met none."""
    texts = []
    for way, words in WORDS.items():
        met = [i for i, kind in enumerate(mapping.ways) if kind == way]
        pairs = [_pair(mapping, index) for index in met]
        if pairs:
            texts.append(f"{words}, {len(pairs):,}: {list_texts(pairs, NAMED)}")
    if mapping.missing:
        texts.append(
            f"classes of the data without a class of the model, {len(mapping.missing):,}: "
            f"{list_texts(_add_proposals(mapping, mapping.missing), NAMED)}; "
            "--class-map can give them one"
        )
    return tuple(texts)


def sentence(mapping: ClassMap, labels: Sequence[str]) -> str | None:
    """Which classes that occur in the data have no class of the model; None: every one has."""
    lost = [name for name in mapping.missing if name in set(labels)]
    if not lost:
        return None
    have = "has" if len(lost) == 1 else "have"
    return (
        f"of the {number_of(len(labels), 'class')} that occur in the data {len(lost):,} {have} no "
        f"class of the model: {list_texts(_add_proposals(mapping, lost), NAMED_IN_HEADLINE)}"
    )


def _pair(mapping: ClassMap, index: int) -> str:
    own, other = mapping.source.names[index], mapping.target.names[mapping.destinations[index]]
    return (
        own if own == other else f"{own} = {other}" if _same(mapping, index) else f"{own} → {other}"
    )


def _same(mapping: ClassMap, index: int) -> bool:
    return mapping.ways[index] in (SYNSET, LIST, ALIAS, NAME)


def _add_proposals(mapping: ClassMap, missing: Sequence[str]) -> list[str]:
    near = proposals(mapping)
    return [f"{name} (nearest name: {near[name]})" if near.get(name) else name for name in missing]
