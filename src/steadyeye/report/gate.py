"""The release gate: whether sealed predictions meet requirements."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from steadyeye.core.errors import UsageError
from steadyeye.core.format import UNITS, clean_xml, format_metric, format_metric_ends, number_of
from steadyeye.core.predictions import Predictions, samples
from steadyeye.core.requirement import (
    Requirement,
    advise_number,
    parse_number,
    parse_requirement,
)
from steadyeye.core.spec import Spec, split
from steadyeye.core.stats.paired import difference, prepare_outcomes
from steadyeye.core.stats.trials import Outcomes
from steadyeye.core.types import Result
from steadyeye.metrics.label_studies.question import METRICS, OF_IMAGES, parse_question
from steadyeye.report import sample_size
from steadyeye.report.comparison.leaderboards import common
from steadyeye.report.comparison.metric_wording import amount, format_ends
from steadyeye.report.gate_verdict import FAILS, HOLDS, OPEN, GateVerdict
from steadyeye.report.label_verdicts import judge_without_labels
from steadyeye.runner.collect import ask
from steadyeye.runner.task import NO_ACCURACY
from steadyeye.runner.validate import check_fits, lacks, metric

RATIO = 10.0
"""The highest ratio that may be required: 1,000 %, which is beyond all metrics."""

REACH = {
    "share": (0.0, 1.0, "shares are in 0…1"),
    "ratio": (0.0, RATIO, f"ratios are in 0…{RATIO:g}"),
    "difference": (-1.0, 1.0, "differences of shares are in −1…1"),
}
"""Unit → the range of a metric, and its description."""


@dataclass(frozen=True)
class Tolerance:
    """The metrics on which a model may be worse than its base by at most `drop`.

    `is_percent`: whether that was written with %.
    """

    specs: tuple[Spec, ...]
    drop: float
    is_percent: bool = False


def requirement(text: str) -> Requirement:
    """The requirement in `text`, of an existing metric.

    Raises `UsageError` as `parse_requirement` does, and for a metric that does not exist.
    """
    required = parse_requirement(text)
    if required.spec.name in OF_IMAGES:
        parse_question(text)
    else:
        metric(required.spec)
    return required


def requirements(texts: Sequence[str]) -> tuple[Requirement, ...]:
    """The requirements in the texts, each once."""
    read = map(requirement, texts)
    return tuple({(str(r.spec), r.sign, r.number): r for r in read}.values())


def tolerance(
    required: Sequence[Requirement], metrics: str | None, drop: str | None, against: bool
) -> Tolerance | None:
    """The allowed drop from a base, on `metrics` or on the required metrics.

    None without a base. Raises `UsageError` for a gate without requirement, or with incomplete
    options.
    """
    if not against:
        for value, flag in ((metrics, "--metrics"), (drop, "--max-drop")):
            if value is not None:
                raise UsageError(f"{flag} needs a base; give --against too")
        if not required:
            raise UsageError("no requirement given; give --require, or --against a base")
        return None
    if drop is None:
        raise UsageError("--against needs a limit; give --max-drop, such as 0.02")
    try:
        allowed = parse_number(drop)
    except UsageError:
        raise UsageError(f"--max-drop {drop}: give a number, such as 0.02 or 2%") from None
    if allowed < 0:
        raise UsageError(f"--max-drop {drop}: give 0 or more")
    specs = split(metrics or "") or list({str(item.spec): item.spec for item in required}.values())
    if not specs:
        raise UsageError("--against needs metrics; give --metrics or --require")
    for spec in specs:
        metric(spec)
    return Tolerance(tuple(specs), allowed, drop.strip().endswith("%"))


def gate(
    tables: Sequence[Predictions],
    requirements: Sequence[Requirement],
    base: Sequence[Predictions] = (),
    tolerance: Tolerance | None = None,
    least: int = 0,
    premise: str | None = None,
) -> tuple[GateVerdict, ...]:
    """A verdict for every requirement, and for every metric of `tolerance`, on every table.

    `base`: the tables to compare with, matched by the fingerprint of their data and the name of the
    model, or as the only model on that data. `least`: the n below which no requirement holds.
    `premise`: the user's assumption about sets without labels, see `parse_premise`. Raises
    `UsageError` for a metric that a table does not have, a number that it cannot reach, and a table
    without a base.
    """
    verdicts = []
    for table in tables:
        for item in requirements:
            if _needs_study(item, table):
                verdicts.append(judge_without_labels(table, item, premise))
            else:
                verdicts.append(_check_requirement(table, item, least))
        if tolerance is not None:
            pair = common([table, _base(table, tables, base)])
            verdicts += [_check_drop(pair, spec, tolerance, least) for spec in tolerance.specs]
    return tuple(verdicts)


def _needs_study(item: Requirement, table: Predictions) -> bool:
    """Whether a requirement needs labels that a table does not have."""
    if item.spec.name in OF_IMAGES:
        return True
    missing = lacks(metric(item.spec), table.columns)
    # a question of a study makes sets of the frames of a video by itself
    is_question = item.spec.name in METRICS and "truth" in missing
    return (is_question or missing == ["truth"]) and not table.truth.any()


def _check_requirement(table: Predictions, required: Requirement, least: int) -> GateVerdict:
    result = _result(table, required.spec)
    _check_reach(required, result)
    near, far = (result.low, result.high) if required.floor else (result.high, result.low)
    numbers = (
        f"{format_metric(result.name, result.value, result.unit)} "
        f"({format_metric_ends(result.name, result.low, result.high, result.unit)})"
    )
    method = "; ".join((result.interval, *result.notes))
    about, among = (str(required), table.model, table.data), result.classes
    ends = result.value, result.low, result.high
    if result.value is None or near is None or far is None:
        why = "the value has no interval"
        may_hold = result.value is None or required.is_met(result.value)
        outcome = OPEN if may_hold else FAILS
        return GateVerdict(*about, outcome, numbers, result.n, method, why, among, *ends)
    outcome = _outcome(required.is_met(result.value), required.is_met(near), result.n >= least)

    def count_needed() -> str:
        if ask(required.spec).outcomes is None:
            return "more videos would narrow its interval"
        return sample_size.to_show(result, required.number, _outcomes(table, required.spec))

    why = _why(
        outcome, not required.is_met(far), "" if result.n >= least else _few(least), count_needed
    )
    return GateVerdict(*about, outcome, numbers, result.n, method, why, among, *ends)


def _check_reach(required: Requirement, result: Result) -> None:
    """Raises `UsageError` for a number that a metric cannot reach, such as 70 meant as 70 %.

    Also for a percentage of a metric that is no share.
    """
    if result.unit not in REACH and required.text.endswith("%"):
        raise UsageError(
            f"'{required.spec} {required.sign} {required.text}': {required.spec.name} is no share; "
            "write its number without %"
        )
    least, most, kind = REACH.get(result.unit, (-math.inf, math.inf, ""))
    if result.unit == "difference" and UNITS.get(required.spec.name) != "pp":
        least, most, kind = -RATIO, RATIO, f"differences of ratios are in −{RATIO:g}…{RATIO:g}"
    if not least <= required.number <= most:
        is_percent = required.text.endswith("%")
        advice = advise_number(required.number, is_percent, least, most)
        raise UsageError(f"'{required}': {kind}; {advice}")


def _check_drop(
    pair: Sequence[Predictions], spec: Spec, allowance: Tolerance, least: int
) -> GateVerdict:
    """The verdict on a model being worse than its base by no more than is allowed."""
    (new, old), drop = pair, allowance.drop
    result = _result(new, spec)
    classes = _result(old, spec).classes
    unlike = ""
    if result.classes != classes:
        unlike = f"not comparable: {old.model} chooses among {number_of(classes or 0, 'class')}"
    if unlike and not ask(spec).judged:
        raise UsageError(
            f"{spec} of {new.model} and its base is {unlike}, and {new.model} among "
            f"{result.classes or 0:,}: with fewer classes a prediction changes less often; leave "
            f"{spec} out of --metrics"
        )
    if result.unit not in REACH and allowance.is_percent:
        raise UsageError(
            f"--max-drop {100 * drop:g}%: {spec.name} is no share; write its number without %"
        )
    if result.unit in REACH and drop > 1:
        written = f"{100 * drop:g}%" if allowance.is_percent else f"{drop:g}"
        advice = advise_number(drop, allowance.is_percent, 0, 1)
        raise UsageError(f"--max-drop {written}: shares are in 0…1; {advice}")
    allowed = f"{spec} at most {amount(drop, result.unit)} worse than the base, {old.model}"
    about = (allowed, new.model, new.data)
    outcomes = [_outcomes(table, spec) for table in pair][:: -1 if ask(spec).lower else 1]
    change = difference(*map(prepare_outcomes, outcomes))
    if change is None:
        return GateVerdict(*about, OPEN, "—", 0, result.interval, "there is no value")
    gap, ends = amount(change.value, result.unit), format_ends(change.low, change.high, result.unit)
    lost = int((~new.valid).sum())
    left = f"; {number_of(lost, 'sample')} left out: no prediction from both models" if lost else ""
    is_met = Requirement(spec, ">=", -drop).is_met
    outcome = _outcome(is_met(change.value), is_met(change.low), change.n >= least)
    few = "" if change.n >= least else _few(least)
    why = _why(
        outcome, change.high < -drop, few, lambda: sample_size.to_hold(change, drop, outcomes)
    )
    why = "; ".join(filter(None, (why, unlike)))
    numbers = f"{'+' if change.value > 0 else ''}{gap} ({ends})"
    method = change.method + left
    gap_ends = change.value, change.low, change.high
    among = result.classes
    return GateVerdict(*about, outcome, numbers, change.n, method, why, among, *gap_ends)


def _outcome(value: bool, bound: bool, many: bool) -> str:
    """The outcome: whether the value and its bound meet the requirement, and n is large enough."""
    if not value:
        return FAILS
    return HOLDS if bound and many else OPEN


def _why(outcome: str, hopeless: bool, few: str, needed: Callable[[], str]) -> str:
    if outcome == FAILS:
        return "its whole interval is outside" if hopeless else ""
    if outcome == OPEN:
        return few or needed()
    return ""


def _few(least: int) -> str:
    return f"n is below the required {least:,}"


def _base(
    table: Predictions, tables: Sequence[Predictions], base: Sequence[Predictions]
) -> Predictions:
    """The base of a model: on the same data, of the same name or alone there."""
    own, *marks = samples([table, *base])
    candidates = [other for other, mark in zip(base, marks, strict=True) if mark == own]
    same = [other for other in candidates if other.model == table.model]
    if len(same) == 1:
        return same[0]
    alone = sum(other.fingerprint == table.fingerprint for other in tables) == 1
    if len(candidates) == 1 and alone:
        return candidates[0]
    pairs = zip(base, marks, strict=True)
    known = ", ".join(f"{other.model} on {other.data} [{mark}]" for other, mark in pairs)
    raise UsageError(
        f"no base for {table.model} on {table.data} [{own}]: --against has {known}; "
        "run the base on the same samples, with one model or models of the same names"
    )


def _result(table: Predictions, spec: Spec) -> Result:
    plugin = check_fits(spec, table, "leave it out or gate that run on its own")
    if "truth" in lacks(plugin, table.columns) and table.competing < 2:
        raise UsageError(
            f"{spec} does not apply to {table.model} on {table.data}: only one class "
            f"competes, so every prediction is right; {NO_ACCURACY}"
        )
    result = ask(spec).metric(table)
    if result.value is None and result.cells and result.n:
        raise UsageError(f"{spec} is more than one number; require a metric with one number")
    return result


def _outcomes(table: Predictions, spec: Spec) -> Outcomes:
    measure: Callable[[Predictions], Outcomes] | None = ask(spec).outcomes
    if measure is None:
        raise UsageError(f"{spec} is not comparable between models; give another metric")
    return measure(table)


def github(verdict: GateVerdict) -> str:
    """The GitHub workflow command of a verdict: an error, or a notice."""
    kind = "notice" if verdict.outcome == HOLDS else "error"
    title = _data(f"{verdict.requirement} {verdict.outcome}")
    title = title.replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} title={title}::{_data(verdict.sentence)}"


def junit(verdicts: Sequence[GateVerdict]) -> bytes:
    """A JUnit report as XML: one test case per verdict, a failure if it does not hold."""
    failed = sum(verdict.outcome != HOLDS for verdict in verdicts)
    counts = {"tests": f"{len(verdicts)}", "failures": f"{failed}", "errors": "0", "skipped": "0"}
    suites = ElementTree.Element("testsuites", {"name": "steadyeye", **counts})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "steadyeye gate", **counts})
    for verdict in verdicts:
        names = {
            "classname": clean_xml(f"{verdict.model} on {verdict.data}"),
            "name": clean_xml(verdict.requirement),
            "time": "0",
        }
        case = ElementTree.SubElement(suite, "testcase", names)
        lines = filter(None, (verdict.sentence, verdict.method, verdict.about_videos))
        text = clean_xml("\n".join(lines))
        if verdict.outcome == HOLDS:
            ElementTree.SubElement(case, "system-out").text = text
        else:
            message = {"message": clean_xml(verdict.sentence), "type": verdict.outcome}
            ElementTree.SubElement(case, "failure", message).text = text
    ElementTree.indent(suites)
    return bytes(ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)) + b"\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
