"""The text that names levels of an operator."""

from steadyeye.core.errors import UsageError

DEFAULT = "0:30"
"""The levels of operators where nobody says which; of one that has fewer, those that it has."""


def named(text: str, most: int) -> tuple[int, ...]:
    """The levels of `first:last[:step]`, both ends meant, or of a list with commas; rising.

    Raises `UsageError` for other text and for a level above `most`.
    """
    try:
        if ":" in text:
            first, last, *step = (int(part) for part in text.split(":"))
            found = set(range(first, last + 1, *step))
        else:
            found = {int(part) for part in text.split(",")}
    except (TypeError, ValueError):
        raise UsageError(
            f"levels '{text}': write first:last, first:last:step or a list such as 5,10,20"
        ) from None
    outside = sorted(level for level in found if not 0 <= level <= most)
    if outside or not found:
        raise UsageError(
            f"levels '{text}': levels go from 0 to {most}, not {outside[:3] or 'none'}"
        )
    return tuple(sorted(found))
