"""What a release must show, as a user writes it: `pm_k(k=10) >= 70%`."""

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass

from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec, parse, split
from steadyeye.runner.validate import metric

SIGNS: dict[type[ast.cmpop], str] = {ast.GtE: ">=", ast.LtE: "<=", ast.Gt: ">", ast.Lt: "<"}


@dataclass(frozen=True)
class Requirement:
    """A metric, `>=`, `>`, `<=` or `<`, and a number in the metric's unit (shares 0…1)."""

    spec: Spec
    sign: str
    number: float

    def __str__(self) -> str:
        return f"{self.spec} {self.sign} {self.number:g}"

    @property
    def floor(self) -> bool:
        """Whether the number is the least allowed, rather than the most."""
        return self.sign.startswith(">")

    def is_met(self, value: float) -> bool:
        """Whether a value is on the right side of the number."""
        if value == self.number:
            return self.sign.endswith("=")
        return (value > self.number) == self.floor


@dataclass(frozen=True)
class Tolerance:
    """The metrics on which a model may be worse than its base by at most `drop`."""

    specs: tuple[Spec, ...]
    drop: float


def requirement(text: str) -> Requirement:
    """The requirement that `text` writes down; a number with % is a hundredth of it.

    Raises `UsageError` for anything but a metric, one comparison and a number, and for a metric
    that does not exist.
    """
    words = text.strip()
    bare = words.removesuffix("%")
    try:
        node = ast.parse(bare, mode="eval").body
    except SyntaxError as error:
        raise _bad(text, error.msg) from None
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        raise _bad(text, "it is not one comparison")
    sign = SIGNS.get(type(node.ops[0]))
    if sign is None:
        raise _bad(text, "compare with >=, >, <= or <")
    spec = parse(ast.unparse(node.left))
    metric(spec)
    side = ast.unparse(node.comparators[0]) + "%" * (bare != words)
    return Requirement(spec, sign, number(side, text))


def number(text: str, whole: str | None = None) -> float:
    """The number in `text`, `0.02` or `2%`. Raises `UsageError` where there is none."""
    bare = text.strip().removesuffix("%")
    try:
        value = float(bare)
    except ValueError:
        raise _bad(whole or text, f"'{bare}' is no number") from None
    if not math.isfinite(value):
        raise _bad(whole or text, f"'{bare}' is not a finite number")
    return value / 100 if text.strip().endswith("%") else value


def requirements(texts: Sequence[str]) -> tuple[Requirement, ...]:
    """The requirements that are written down, each once."""
    return tuple({str(each): each for each in map(requirement, texts)}.values())


def tolerance(
    required: Sequence[Requirement], metrics: str | None, drop: str | None, against: bool
) -> Tolerance | None:
    """What may be worse than a base, by how much: `metrics`, or the metrics required.

    None without a base. Raises `UsageError` for a gate that asks nothing or asks by halves.
    """
    if not against:
        for given, flag in ((metrics, "--metrics"), (drop, "--max-drop")):
            if given is not None:
                raise UsageError(f"{flag} needs a base; give --against too")
        if not required:
            raise UsageError("no requirement given; give --require, or --against a base")
        return None
    if drop is None:
        raise UsageError("--against needs a limit; give --max-drop, such as 0.02")
    if number(drop) < 0:
        raise UsageError(f"--max-drop {drop}: give 0 or more")
    specs = split(metrics or "") or list({str(each.spec): each.spec for each in required}.values())
    if not specs:
        raise UsageError("--against needs metrics; give --metrics or --require")
    for spec in specs:
        metric(spec)
    return Tolerance(tuple(specs), number(drop))


def _bad(text: str, why: str) -> UsageError:
    return UsageError(
        f'cannot read \'{text}\': {why}; write it like "pm_k(k=10) >= 0.70" or "... >= 70%"'
    )
