"""Numbers as text, each in its unit, and counts with their nouns."""

import re
import shlex
from collections.abc import Sequence
from typing import Protocol

WITHIN = "within this one video only"
"""Suffix of the method of an interval that does not apply to other footage."""
_LETTERS = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
RIGHT_TO_LEFT = re.compile(rf"{_LETTERS}(?:(?:{_LETTERS}|[ '-])*{_LETTERS})?")
"""Names in Hebrew, Arabic and the other scripts that are written from right to left."""
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Ranged(Protocol):
    """A number with the ends of its 95 % interval, or None."""

    @property
    def low(self) -> float | None: ...  # noqa: D102
    @property
    def high(self) -> float | None: ...  # noqa: D102


class Share(Ranged, Protocol):
    """A share, 0…1, with the ends of its interval, or None."""

    @property
    def value(self) -> float | None: ...  # noqa: D102


def clean_xml(text: str) -> str:
    """A text with U+FFFD instead of characters that XML 1.0 does not allow, escaped or not."""
    return _NOT_IN_XML.sub("\ufffd", text)


def isolate(text: str) -> str:
    """A text in which names from right to left do not move the numbers and words beside them.

    Each stands between Unicode's marks of an isolate (UAX 9, 2.4), which are not seen.
    """
    return RIGHT_TO_LEFT.sub("\u2068\\g<0>\u2069", text)


def number_of(n: int, noun: str, plural: str = "") -> str:
    """A count with its noun: `1 video`, `1,200 videos`, `2 classes`.

    `noun`: in the singular. `plural`: where it is not the noun with an "s" or "es" at its end.
    """
    end = "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{n:,} {noun if n == 1 else plural or noun + end}"


def quote_word(text: str) -> str:
    """A word of a command line, in quotes if a shell would split it."""
    if any(c in text for c in '"$`\\!'):
        return shlex.quote(text)
    return f'"{text}"' if any(c in text for c in " ()'*?[]~&;|<>#") else text


def list_some(texts: Sequence[str], most: int = 3) -> str:
    """The first texts of several, `one; two; three; …`."""
    return "; ".join([*texts[:most], *(["…"] if len(texts) > most else [])])


def percent(value: float | None, digits: int = 1) -> str:
    """A share as a percentage, `84.8 %`, with a narrow no-break space; `—` for None."""
    return "—" if value is None else f"{_hundredths(value, digits)}\u202f%"


def interval(low: float | None, high: float | None) -> str:
    """An interval, `82.5–86.8 %`, with signs below 0: `−7.5 to +18.7 %`; `—` if it is open."""
    if low is None or high is None:
        return "—"
    if _hundredths(low, 1).startswith("−"):
        return f"{points(low)} to {points(high)}\u202f%"
    return f"{_hundredths(low, 1)}–{percent(high)}"


def format_agreement_ends(low: float | None, high: float | None) -> str:
    """An interval of alpha or kappa, `0.55 to 0.90`; `—` if it is open."""
    return "—" if low is None or high is None else f"{low:.2f} to {high:.2f}".replace("-", "−")


def format_share(share: Share) -> str:
    """A share with its interval, `84.8 % (82.5–86.8 %)`."""
    return f"{percent(share.value)} ({interval(share.low, share.high)})"


def points(value: float | None) -> str:
    """A difference of shares with its sign, in percentage points, `+2.1`; `—` for None."""
    return "—" if value is None else f"{value * 100:+.1f}".replace("-", "−").replace("−0.0", "+0.0")


def format_difference(difference: Share) -> str:
    """A difference of shares with its interval, `+2.1 (−1.0 to +5.2)`; alone if that is open."""
    text = points(difference.value)
    if difference.low is None or difference.high is None:
        return text
    return f"{text} ({points(difference.low)} to {points(difference.high)})"


PERCENTAGES = frozenset({"share", "ratio"})
"""Units that are shown as percentages, without a sign."""

DIGITS = {"rank": 1, "score": 3}
"""Unit → decimals of a plain number; 0 for all others."""


def format_value(value: float | None, unit: str) -> str:
    """A value in its unit: a percentage, seconds, a score, a rank, a whole number; `—` for None."""
    if unit == "difference":
        return points(value)
    if value is None or unit in PERCENTAGES:
        return percent(value)
    if unit == "seconds":
        return f"{value:.2f}\u202fs"
    if unit == "pixels":
        return f"{value:.1f}\u202fpx"
    return f"{value:.{DIGITS.get(unit, 0)}f}"


def span(low: float | None, high: float | None, unit: str) -> str:
    """An interval in its unit; `—` if both ends are open, `≥ 12` if the upper one is."""
    if unit == "difference":
        return "—" if low is None or high is None else f"{points(low)} to {points(high)}"
    if unit in PERCENTAGES or low is None:
        return interval(low, high)
    if unit == "seconds" and high is not None:
        return f"{low:.2f}–{format_value(high, unit)}"
    if unit == "pixels" and high is not None:
        return f"{low:.1f}–{format_value(high, unit)}"
    return (
        f"≥ {format_value(low, unit)}"
        if high is None
        else f"{format_value(low, unit)}–{format_value(high, unit)}"
    )


UNITS = {
    **dict.fromkeys(("drop", "map_drop", "drop in mAP", "effective_robustness"), "pp"),
    "relative_mce": "%",
}
"""Metric → the suffix of its numbers, for shares and for differences."""


def format_metric(metric: str, value: float | None, unit: str) -> str:
    """A value of a metric in its unit, a difference of shares in percentage points: `2.1 pp`."""
    return _in_points(metric, format_value(value, unit))


def format_metric_ends(metric: str, low: float | None, high: float | None, unit: str) -> str:
    """The interval of a metric in its unit, of a difference of shares in percentage points."""
    return _in_points(metric, span(low, high, unit))


def _in_points(metric: str, text: str) -> str:
    unit = UNITS.get(metric.partition("(")[0])
    if unit is None or text == "—":
        return text
    return f"{text.removesuffix('%').rstrip()}\u202f{unit}"


def format_unsigned_points(value: float | None) -> str:
    """A difference of shares without a plus sign, in percentage points, `12.5`; `—` for None."""
    return "—" if value is None else _hundredths(value, 1)


def _hundredths(value: float, digits: int) -> str:
    text = f"{value * 100:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def probability(p: float) -> str:
    """A p-value, `0.023` or `< 0.001`."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def clock(seconds: float) -> str:
    """A time within a video, `1:03.2`."""
    tenths = round(seconds * 10)
    return f"{tenths // 600}:{tenths % 600 // 10:02d}.{tenths % 10}"


def duration(seconds: float) -> str:
    """A length of time, `0.14 s`, `1.3 s` or `120 s`."""
    digits = 2 if seconds < 1 else 1 if seconds < 100 else 0
    return f"{seconds:.{digits}f}\u202fs"
