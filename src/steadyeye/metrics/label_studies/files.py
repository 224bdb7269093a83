"""The files of a study: `labels.csv` with the labels, and `study.json` with the plan.

CSV, one set a line, several classes joined by `|`; none where nobody could tell::

    set,labels
    bikes.mp4/000123,bicycle
    cars.mp4/000040,car|truck
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.core.storage.files import Place, encode
from steadyeye.core.storage.text_files import encode_csv, read_json, read_table
from steadyeye.metrics.label_studies.difference_study import DifferenceStudy
from steadyeye.metrics.label_studies.judge import Labels
from steadyeye.metrics.label_studies.question import Question, parse_question
from steadyeye.metrics.label_studies.study import LabelStudy, Premise, StopRule, plan_study

VERSION = 2
READABLE = (1, VERSION)
"""Versions of `study.json` that are read; the first has no checks of the premise."""
LABELS, STUDY = "labels.csv", "study.json"


@dataclass(frozen=True)
class StudyRecord:
    """The content of `study.json`, from which the same study is planned and verified again.

    `order`: the candidates for labelling, `checks`: the sets that check the premise, each in its
    own order. `fingerprint`: of the sets and predictions. `samples`: of the data and its images,
    ('', '') if the study was planned before they were recorded. `earlier`: sets with an earlier
    label → the model for which it was collected. `against`: the second model of a study of two,
    otherwise ''.
    """

    question: Question
    premise: Premise | None
    seed: int
    strata: str
    stop: StopRule
    order: tuple[str, ...]
    fingerprint: str
    model: str
    data: str
    samples: tuple[str, str] = ("", "")
    earlier: Mapping[str, str] = field(default_factory=dict)
    checks: tuple[str, ...] = ()
    against: str = ""


@dataclass(frozen=True, eq=False)
class LabelledStudy:
    """The content of a folder of labels: the record of its study, and set → its classes."""

    record: StudyRecord
    labels: Labels


def read_labelled_study(folder: Place) -> LabelledStudy:
    """The study and the labels in a folder, as `steadyeye review-export` writes them.

    Raises `UsageError` as `read_study` and `read_labels` do.
    """
    return LabelledStudy(read_study(folder / STUDY), read_labels(folder / LABELS))


def read_labels(path: Place) -> dict[str, tuple[str, ...]]:
    """Set → its classes, as they are written. Raises `UsageError` where a set comes twice."""
    labels: dict[str, tuple[str, ...]] = {}
    for row in read_table(path, "labels", needed=("set", "labels")):
        name = row.get("set")
        if not name:
            raise UsageError(f"{row.place}: names no set; give its id")
        if name in labels:
            raise UsageError(f"{row.place}: the set '{name}' comes twice; keep one line")
        classes = (" ".join(text.split()) for text in row.get("labels").split("|"))
        labels[name] = tuple(filter(None, classes))
    return labels


def write_labels(labels: Mapping[str, Sequence[str]]) -> bytes:
    """The content of a label file, sorted by set, so that the same labels are the same bytes."""
    rows = [(name, "|".join(labels[name])) for name in sorted(labels)]
    return encode_csv([("set", "labels"), *rows]).encode()


def write_study(study: LabelStudy | DifferenceStudy) -> bytes:
    """The content of `study.json`."""
    content = {
        "version": VERSION,
        "question": str(study.question),
        "premise": asdict(study.premise) if study.premise else None,
        "seed": study.seed,
        "strata": study.strata_by,
        "stop": asdict(study.stop),
        "model": study.model,
        **({"against": study.against} if isinstance(study, DifferenceStudy) else {}),
        "data": study.data,
        "fingerprint": study.fingerprint,
        "samples": list(study.samples),
        "order": list(study.candidates),
        "checks": list(study.checks),
    }
    if study.earlier:
        content["earlier"] = dict(study.earlier)
    return encode(content)


def read_study(path: Place) -> StudyRecord:
    """The record at a path. Raises `UsageError` for other files."""
    content = read_json(path, "study")
    if not isinstance(content, dict) or content.get("version") not in READABLE:
        raise UsageError(f"'{path}' is no study of this version; collect the labels again")
    try:
        return _record(content)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UsageError(
            f"'{path}' is damaged: a field is missing or of another kind; take the file that was "
            "written with the labels"
        ) from None


def _record(content: Mapping[str, Any]) -> StudyRecord:
    premise, stop = content["premise"], content["stop"]
    if premise is not None:
        checks = int(premise.get("checks", 0))
        premise = Premise(str(premise["name"]), str(premise["reason"]), checks)
    budget, target = stop["budget"], stop["target"]
    source, images = content.get("samples", ("", ""))
    return StudyRecord(
        question=parse_question(content["question"]),
        premise=premise,
        seed=int(content["seed"]),
        strata=str(content["strata"]),
        stop=StopRule(
            None if budget is None else int(budget), None if target is None else float(target)
        ),
        order=tuple(map(str, content["order"])),
        fingerprint=str(content["fingerprint"]),
        model=str(content["model"]),
        data=str(content["data"]),
        samples=(str(source), str(images)),
        earlier={str(name): str(model) for name, model in content.get("earlier", {}).items()},
        checks=tuple(map(str, content.get("checks", ()))),
        against=str(content.get("against", "")),
    )


def find_study(record: StudyRecord, predictions: Predictions) -> LabelStudy | None:
    """The study of a record where it was planned on these predictions; else None."""
    study = _plan(record, predictions)
    planned = (study.fingerprint, study.candidates, study.checks)
    return study if planned == (record.fingerprint, record.order, record.checks) else None


def plan_again(record: StudyRecord, predictions: Predictions) -> LabelStudy:
    """The study of a record on the predictions it was made of.

    Raises `UsageError` for other predictions, or where the order differs from the recorded one.
    """
    if record.against:
        raise UsageError(f"the study compares {record.model} and {record.against}; give both runs")
    study = find_study(record, predictions)
    if study is None:
        raise UsageError(
            f"the study was planned for {record.model} on {record.data}, whose predictions differ "
            f"from those of {predictions.model} on {predictions.data}; give the run that it was "
            "planned for"
        )
    return study


def _plan(record: StudyRecord, predictions: Predictions) -> LabelStudy:
    study = plan_study(
        predictions,
        record.question,
        record.premise,
        seed=record.seed,
        strata=record.strata,
        stop=record.stop,
    )
    return replace(study, earlier=record.earlier)
