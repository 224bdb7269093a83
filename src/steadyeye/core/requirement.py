"""Requirements for a number, as users write them: `pm_k(k=10) >= 70%`."""

import ast
import math
from dataclasses import dataclass, field
from fractions import Fraction

from steadyeye.core.errors import UsageError, shorten
from steadyeye.core.python_syntax import parse_expression
from steadyeye.core.spec import Spec, parse

SIGNS: dict[type[ast.cmpop], str] = {ast.GtE: ">=", ast.LtE: "<=", ast.Gt: ">", ast.Lt: "<"}

CLOSE = 1e-9  # rounding errors of double precision are smaller


@dataclass(frozen=True)
class Requirement:
    """A metric, `>=`, `>`, `<=` or `<`, and a number in the metric's unit (shares 0…1).

    `text`: the number as written, with its %.
    """

    spec: Spec
    sign: str
    number: float
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.spec} {self.sign} {self.text or self.number}"

    @property
    def exact(self) -> Fraction:
        """The number exactly as written, which binary numbers may miss: 7 % of 100 is 7."""
        bare = (self.text or str(self.number)).strip()
        return Fraction(bare.removesuffix("%")) / (100 if bare.endswith("%") else 1)

    @property
    def floor(self) -> bool:
        """Whether the number is a lower limit, not an upper one."""
        return self.sign.startswith(">")

    def is_met(self, value: float) -> bool:
        """Whether a value meets the requirement."""
        if is_at(value, self.number):
            return self.sign.endswith("=")
        return (value > self.number) == self.floor


def is_at(value: float, number: float) -> bool:
    """Whether a value equals the number up to rounding, as 0.692 equals 69.2 %."""
    return abs(value - number) <= CLOSE


def advise_number(number: float, is_percent: bool, least: float, most: float) -> str:
    """What to write for a number outside `least` … `most`: 70 was meant as 70 %."""
    if not is_percent and least <= number / 100 <= most:
        return f"write {number / 100:g} or {number:g}%"
    return f"write {100 * least:g}% to {100 * most:g}%"


def parse_requirement(text: str) -> Requirement:
    """The requirement in `text`; a number with % is a hundredth of it.

    The metric need not exist. Raises `UsageError` for anything but a metric, one comparison and a
    number.
    """
    words = text.strip()
    bare = words.removesuffix("%")
    try:
        node = parse_expression(bare)
    except (SyntaxError, ValueError) as error:
        raise _bad(
            text, getattr(error, "msg", "it has a zero byte or half of a surrogate pair")
        ) from None
    except (RecursionError, MemoryError):
        raise _bad(text, "it is nested too deeply") from None
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        raise _bad(text, "it is not one comparison")
    sign = SIGNS.get(type(node.ops[0]))
    if sign is None:
        raise _bad(text, "compare with >=, >, <= or <")
    try:
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
    except RecursionError:
        raise _bad(text, "it is nested too deeply") from None
    side = right + "%" * (bare != words)
    return Requirement(parse(left), sign, parse_number(side, text), side)


def parse_number(text: str, whole: str | None = None) -> float:
    """The number in `text`, `0.02` or `2%`. Raises `UsageError` if there is none."""
    bare = text.strip().removesuffix("%")
    try:
        value = float(bare)
    except ValueError:
        raise _bad(whole or text, f"'{shorten(bare)}' is no number") from None
    if not math.isfinite(value):
        raise _bad(whole or text, f"'{bare}' is not a finite number")
    return value / 100 if text.strip().endswith("%") else value


def _bad(text: str, why: str) -> UsageError:
    return UsageError(
        f"cannot read '{shorten(text)}': {why}; "
        'write it like "pm_k(k=10) >= 0.70" or "... >= 70%"'
    )
