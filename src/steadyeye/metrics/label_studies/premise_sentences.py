"""The premise of a study in words: whether it was checked, and the result of the checks."""

from steadyeye.core.format import number_of, percent
from steadyeye.metrics.label_studies.judge import StudyResult
from steadyeye.metrics.label_studies.premise_checks import (
    ADVISED,
    CheckCounts,
    bound_clean_checks,
    count_checks_needed,
)
from steadyeye.metrics.label_studies.study import CONSTANT_CLASS, STATED, LabelStudy


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
