"""The result and the premise of a study in words, for these sets and not for other videos."""

from collections import Counter
from collections.abc import Sequence

from steadyeye.core.format import interval, number_of, percent
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.stats.label_budget import fixed_sample
from steadyeye.metrics.label_studies.judge import StudyResult
from steadyeye.metrics.label_studies.premise_checks import (
    ADVISED,
    CheckCounts,
    bound_clean_checks,
    count_checks_needed,
)
from steadyeye.metrics.label_studies.study import CONSTANT_CLASS, STATED, LabelStudy


def say_result(study: LabelStudy, result: StudyResult) -> str:
    """The result in one line: the verdict and what it took, or the interval."""
    sets, numbers = say_sets(study), say_numbers(result.interval)
    if study.question.share is None:
        return f"{study.question.name} {numbers} of these {sets}, after {say_labels(study, result)}"
    if result.holds is None:
        return (
            f"{study.question} is open for these {sets} after {say_labels(study, result)}: "
            f"{numbers}; {_say_more(study, result)}"
        )
    verdict = "holds" if result.holds else "does not hold"
    about = f"{study.question} {verdict} for these {sets}: {say_cost(study, result)}"
    return f"{about}; {numbers}" if result.counts.total else f"{about}, {_say_most(study)}"


def say_cost(study: LabelStudy, result: StudyResult) -> str:
    """After how many labels it was shown, and how many more it takes where it is open."""
    if result.holds is None:
        return f"open after {say_labels(study, result)}; {_say_more(study, result)}"
    if not result.counts.total:
        return "shown without a label"
    return f"shown after {say_labels(study, result)}{_against_fixed(study, result)}"


def _say_more(study: LabelStudy, result: StudyResult) -> str:
    """The least number of further labels; if no set is left, what would decide the question."""
    if study.checks and result.counts.total == len(study.order):
        return "no set is left to ask; check more sets with a larger --check-premise"
    return f"at least {number_of(result.more or 0, 'more label')} to decide it"


def say_bound(study: LabelStudy) -> str:
    """The bound before any label, in one line."""
    return f"{study.question.name} of these {say_sets(study)} is {_say_most(study)}"


MISSED = "an object may be missed in any image"


def _say_most(study: LabelStudy) -> str:
    if study.countable == len(study.sets) and not study.checks:
        text = f"between {percent(0)} and {percent(1)} before any label is collected"
        return f"{text}: {MISSED}" if study.question.metric == "image_error_rate" else text
    share = percent(study.countable / len(study.sets))
    why = {
        "pm_k": f"only {share} have one prediction on all frames",
        "drop": f"only {share} have several predictions",
        "accuracy": f"{share} have a prediction",
        "false_positive_rate": f"only {share} have a detection above the score",
        "image_error_rate": MISSED,
    }[study.question.metric]
    if study.checks:
        others = f"{len(study.checks):,} of the other {number_of(study.exempt, 'set')}"
        text = f"at most {share} if each shows one class on all its frames: {why}"
        return f"{text}; checks cover {others}"
    return f"at most {share}, whatever their labels: {why}"


def _against_fixed(study: LabelStudy, result: StudyResult) -> str:
    """How many labels a sample of a fixed size would have needed, where it is more."""
    value, share = result.interval.value, study.question.share
    if value is None or share is None or study.scenes:
        return ""
    fixed = fixed_sample(value, float(share), len(study.sets))
    return f"; a fixed sample would have asked for {fixed:,}" if fixed > result.labels else ""


def say_numbers(share: Interval) -> str:
    """The value with its interval; the interval alone where there is no value."""
    ends = f"95 % interval {interval(share.low, share.high)}"
    return ends if share.value is None else f"{percent(share.value)} ({ends})"


def say_earlier(study: LabelStudy) -> str:
    """The number of used labels of earlier studies, and the condition of validity."""
    models = Counter(study.earlier.values())
    parts = [f"{number_of(number, 'label')} collected for {m}" for m, number in models.items()]
    return (
        f"{' and '.join(parts)} are used, and nobody is asked about these sets again. The result "
        f"is valid if neither {study.model} nor the question was chosen with these labels."
    )


def say_labels(study: LabelStudy, result: StudyResult) -> str:
    """How many labels count, and how many of them were collected for another study."""
    labels = number_of(result.labels, "label")
    # of scenes all labels count, of sets the first of the order
    counted = study.candidates if study.scenes else study.candidates[: result.labels]
    text = f"{labels}{_say_origins(study, counted)}"
    checked = result.counts.checks.checked
    if not checked:
        return text
    return f"{text} and {number_of(checked, 'check')}{_say_origins(study, study.checks[:checked])}"


def _say_origins(study: LabelStudy, names: Sequence[str]) -> str:
    """For which other models the labels of some sets were collected; '' where for none."""
    models = Counter(study.earlier[name] for name in names if name in study.earlier)
    return "".join(f", {number:,} of them collected for {m}" for m, number in models.items())


def say_sets(study: LabelStudy) -> str:
    """All that a study is about, `3,000 sets`."""
    return number_of(len(study.sets), "image" if study.question.of_images else "set")


def say_premise(study: LabelStudy, result: StudyResult) -> str:
    """The premise and its status, in words; '' if the question has none."""
    if study.premise is None:
        return ""
    text = str(study.premise)
    if study.checks:
        return f"{text}: {say_checks(study, result)}"
    advice = "" if rests_on_low_end(study, result) else say_advice(study)
    return f"{text}; {advice}" if advice else text


def rests_on_low_end(study: LabelStudy, result: StudyResult) -> bool:
    """Whether the verdict is that at least so many sets count, which needs no premise.

    A set that breaks the premise can only count in addition.
    """
    return result.holds is not None and result.holds is study.question.wants_many


def say_checks(study: LabelStudy, result: StudyResult) -> str:
    """The result of the checks so far, and by how much they raise the upper end, in words."""
    counts = result.counts.checks
    if not counts.checked:
        return f"{_say_planned(counts)} to come; until then the upper end is no bound"
    any_time = study.question.share is not None or study.stop.target is not None
    most = counts.allow(any_time=any_time).sets
    rest = (
        f"at most {percent(most / counts.exempt)} of the {number_of(counts.exempt, 'set')} that "
        f"need no label may count: the upper end is {_say_points(study, most)} higher"
    )
    return f"{_word_doubtful(counts)}; {rest}"


def say_advice(study: LabelStudy) -> str:
    """What checks would show for a premise that is only stated; '' otherwise.

    The number of checks is `ADVISED`, or all sets that need no label.
    """
    premise, number = study.premise, min(ADVISED, study.exempt)
    if premise is None or (premise.name, premise.reason) != (CONSTANT_CLASS, STATED) or not number:
        return ""
    share = bound_clean_checks(number, study.exempt) / study.exempt
    return (
        f"nobody looks at the {number_of(study.exempt, 'set')} that need no label: "
        f"`steadyeye label --check-premise {number}` asks about {number:,} of them, and if each "
        f"shows one class on all its frames, at most {percent(share)} of them do not"
    )


def say_plan(study: LabelStudy) -> str:
    """The cost of a study's checks, in words; '' if it has none."""
    number = len(study.checks)
    if not number:
        return ""
    most = bound_clean_checks(number, study.exempt)
    text = (
        f"{number_of(number, 'check')} of the premise come on top, of the "
        f"{number_of(study.exempt, 'set')} that need no label: if each shows one class on all its "
        f"frames, at most {percent(most / study.exempt)} of them do not, and the upper end is "
        f"{_say_points(study, most)} higher."
    )
    deciding = count_deciding_checks(study)
    if deciding is None:
        return f"{text} A result that needs the upper end takes more labels than is said here."
    if deciding > number:
        return f"{text} They are too few to decide {study.question}; {deciding:,} do."
    return f"{text} At most {deciding:,} of them decide {study.question} then."


def count_deciding_checks(study: LabelStudy) -> int | None:
    """The number of checks, none doubtful, for a decision that the premise makes without labels.

    None if labels are needed even if the premise holds.
    """
    if study.question.share is None or not study.checks:
        return None
    spare = study.threshold - 1 - study.countable
    return count_checks_needed(spare, study.exempt) if spare >= 0 else None


def _word_doubtful(counts: CheckCounts) -> str:
    checked = f"{number_of(counts.checked, 'checked set')}"
    if not counts.is_complete:
        checked = f"{checked}, {_say_planned(counts)} in all,"
    if not counts.doubtful:
        return f"each of {checked} shows one class on all its frames"
    return (
        f"{len(counts.doubtful):,} of {checked} may show several classes, first "
        f"'{counts.doubtful[0]}'"
    )


def _say_points(study: LabelStudy, sets: int) -> str:
    return f"{100 * sets / len(study.sets):.1f} percentage points"


def _say_planned(counts: CheckCounts) -> str:
    return number_of(counts.planned, "check")
