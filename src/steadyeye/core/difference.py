"""The first difference of two records, in words short enough for an error."""

from collections.abc import Mapping, Sequence
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.spec import Spec, parse

FINGERPRINT = "fingerprint"
CONTENTS = {
    "model": "model file, weights, classes or code changed",
    "base": "base model, its weights, classes or code changed",
    "data": "samples, labels or boxes of the data changed",
}
"""Kind of record → words for a changed fingerprint when all other entries are equal."""
NOTES = ("notes", "warning")
"""Entries of a record that explain and decide no prediction."""
MOST = 80
"""Most letters of a displayed value."""
CONTEXT = 20
"""Letters before the first difference in a longer value."""


def drop_notes(record: Any) -> Any:
    """A record of mappings without `notes` and `warning`, which explain and decide no prediction.

    They change with the files beside the data, and with their wording in another version.
    """
    if not isinstance(record, Mapping):
        return record
    return {key: drop_notes(value) for key, value in record.items() if key not in NOTES}


def describe_difference(name: str, before: object, after: object) -> str:
    """The first difference of two values: "k of video in data is 5, not 10".

    `name`: of the value. It descends into mappings, lists and specs to the first different part,
    and shows only that part.
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return _of_keys(f" of {name}", before, after)
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        return _of_items(name, before, after)
    specs = _read_specs(before, after)
    if specs:
        kwargs = [spec.kwargs for spec in specs]
        return _of_keys(f" of {specs[0].name} in {name}", kwargs[0], kwargs[1])
    old, new = _shorten(repr(before), repr(after))
    return f"{name} is {old}, not {new}"


def _of_keys(place: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    keys = [key for key in dict.fromkeys((*before, *after)) if not _same(key, before, after)]
    # what a fingerprint is made of says more, where that is on record too
    first = min(keys, key=lambda key: key == FINGERPRINT)
    if first == FINGERPRINT and place.removeprefix(" of ") in CONTENTS:
        return CONTENTS[place.removeprefix(" of ")]
    if first not in before:
        return f"{first}{place} was not given, now it is {_cut(repr(after[first]), 0)}"
    if first not in after:
        return f"{first}{place} was {_cut(repr(before[first]), 0)}, now it is not given"
    return describe_difference(f"{first}{place}", before[first], after[first])


def _same(key: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return key in before and key in after and bool(before[key] == after[key])


def _of_items(name: str, before: Sequence[Any], after: Sequence[Any]) -> str:
    if len(before) != len(after):
        gone = [item for item in before if item not in after]
        new = [item for item in after if item not in before]
        counts = f"{name} has {number_of(len(before), 'item')}, not {len(after):,}"
        parts = [
            f"{word} {_cut(repr(items[0]), 0)}"
            for word, items in (("without", gone), ("with", new))
            if items
        ]
        return f"{counts}, now {' and '.join(parts)}" if parts else counts
    pairs = enumerate(zip(before, after, strict=True), start=1)
    number, (old, new_) = next((i, pair) for i, pair in pairs if pair[0] != pair[1])
    return describe_difference(f"item {number} of {name}" if len(before) > 1 else name, old, new_)


def _read_specs(before: object, after: object) -> tuple[Spec, Spec] | None:
    """Both values as specs, if they are specs of the same plugin with different arguments."""
    if not isinstance(before, str) or not isinstance(after, str):
        return None
    try:
        specs = parse(before), parse(after)
    except UsageError:
        return None
    return specs if specs[0].name == specs[1].name and specs[0] != specs[1] else None


def _shorten(before: str, after: str) -> tuple[str, str]:
    """Both texts; long ones are shortened to the part around the first difference."""
    pairs = enumerate(zip(before, after, strict=False))
    same = next((i for i, (a, b) in pairs if a != b), min(len(before), len(after)))
    start = max(same - CONTEXT, 0) if max(len(before), len(after)) > MOST else 0
    return _cut(before, start), _cut(after, start)


def _cut(text: str, start: int) -> str:
    end = start + MOST
    return f"{'…' if start else ''}{text[start:end]}{'…' if len(text) > end else ''}"
