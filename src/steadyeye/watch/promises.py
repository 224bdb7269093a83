"""Promises about a stream, and when they are broken."""

import re
from dataclasses import dataclass, replace
from math import isclose
from typing import Any

from steadyeye.core.errors import UsageError, shorten, unknown
from steadyeye.core.format import percent
from steadyeye.core.stats.confidence_sequence import Alarm
from steadyeye.watch.measures import MEASURES

PROMISE = re.compile(r"\s*([a-z_]+)\s*(<=|>=|<|>)\s*([0-9.]+)\s*(%?)\s*")
CLOSING = 60.0
"""Blocks in which a promise that is still broken is once taken for kept again, at most."""


@dataclass(frozen=True)
class Promise:
    """That a measure is at most, or at least, a `limit`, 0…1."""

    measure: str
    is_most: bool
    limit: float

    def __str__(self) -> str:
        sign = "<=" if self.is_most else ">="
        # as many digits as tell it from any other limit
        digits = next(n for n in range(1, 20) if isclose(round(self.limit, n + 2), self.limit))
        return f"{self.measure} {sign} {percent(self.limit, digits).replace(chr(0x202F), ' ')}"


@dataclass(frozen=True)
class Watched:
    """A promise and its state.

    `alarm`: tests whether it is broken or, while it is broken, whether it is kept again. `broken`:
    how often it was broken.
    """

    promise: Promise
    alarm: Alarm
    is_broken: bool = False
    broken: int = 0

    def add(self, value: float, every: float) -> "Watched":
        """The promise after one more block.

        `every`: blocks in which one false alarm is expected at most.
        """
        # broken is what lies above a limit: of "at least" the other way round, and to be kept, too
        is_above = self.promise.is_most != self.is_broken
        alarm = self.alarm.add(value if is_above else 1 - value)
        if not alarm.is_raised:
            return replace(self, alarm=alarm)
        is_broken = not self.is_broken
        return replace(
            self,
            alarm=_make_alarm(self.promise, is_broken, every),
            is_broken=is_broken,
            broken=self.broken + is_broken,
        )

    def record(self) -> dict[str, Any]:
        """For the state file."""
        evidence = list(self.alarm.evidence)
        return {
            "promise": str(self.promise),
            "evidence": evidence,
            "blocks": self.alarm.n,
            "is_broken": self.is_broken,
            "broken": self.broken,
        }

    def resume(self, record: dict[str, Any], every: float) -> "Watched":
        """As a state file holds it."""
        alarm = _make_alarm(self.promise, record["is_broken"], every)
        evidence = tuple(map(float, record["evidence"]))
        alarm = replace(alarm, evidence=evidence, n=int(record["blocks"]))
        return replace(
            self, alarm=alarm, is_broken=record["is_broken"], broken=int(record["broken"])
        )


def watch_promise(promise: Promise, every: float) -> Watched:
    """A promise at the start of a watch."""
    return Watched(promise, _make_alarm(promise, False, every))


def _make_alarm(promise: Promise, is_broken: bool, every: float) -> Alarm:
    is_above = promise.is_most != is_broken
    limit = promise.limit if is_above else 1 - promise.limit
    return Alarm(limit, CLOSING if is_broken else every)


def read_promise(text: str) -> Promise:
    """The promise of a text such as `blink_rate <= 5%`. Raises `UsageError` where it is none."""
    match = PROMISE.fullmatch(text)
    if match is None:
        raise UsageError(
            f"'{shorten(text)}' is no promise; write a measure, <= or >=, and a share, such as "
            "'blink_rate <= 5%'"
        )
    measure, sign, number, per_cent = match.groups()
    if measure not in MEASURES:
        raise unknown("measure", measure, MEASURES)
    try:
        limit = float(number) / (100 if per_cent else 1)
    except ValueError:
        raise UsageError(
            f"'{number}' in '{shorten(text)}' is no number; write 5% or 0.05"
        ) from None
    if not 0 < limit < 1:
        raise UsageError(
            f"the limit of '{shorten(text)}' is {number}{per_cent or ''}; give a share above 0 % "
            "and below 100 %, such as 5%"
        )
    return Promise(measure, sign.startswith("<"), limit)
