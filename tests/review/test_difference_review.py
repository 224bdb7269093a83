"""A label study of two models in the review: its page, its folder, and resuming it."""

from dataclasses import replace

import numpy as np
import pytest
from review_toys import make_url

from steadyeye import testing
from steadyeye.core.errors import UsageError
from steadyeye.core.types import Sample
from steadyeye.metrics.label_studies.difference_study import plan_difference
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.study import Premise, StopRule, plan_study
from steadyeye.review import database
from steadyeye.review.protocol.stages import read_plan
from steadyeye.review.studies.live_study import LiveStudy
from steadyeye.review.studies.study_folder import (
    Labelling,
    begin_study,
    read_folder,
    resume_difference,
    resume_study,
)
from steadyeye.review.studies.study_items import SetFrames, StudyItems
from steadyeye.review.studies.study_summary import describe_difference

ONE_CLASS = Premise("constant-class")


class Pixels:
    """One picture for every row."""

    def __getitem__(self, row):
        return Sample(str(row), lambda: np.full((24, 32, 3), row % 250, np.uint8))


def make_tables():
    """Predictions of two models on the same sets, without labels."""
    first = testing.example_predictions(40, 0, 0.7)
    columns = tuple(name for name in first.columns if name != "truth")
    first = replace(first, truth=np.zeros_like(first.truth), columns=columns)
    scores = np.roll(first.scores, 5, axis=0)
    return first, replace(first, model="other", scores=scores)


def begin(root, **stop):
    tables = make_tables()
    study = plan_difference(*tables, parse_question("pm_k(k=2)"), ONE_CLASS, stop=StopRule(**stop))
    root.mkdir()
    begin_study(root, study, tables[0], Labelling(), tables[1])
    return tables, study


def test_the_page_of_two_models(tmp_path):
    root = tmp_path / "study"
    tables, study = begin(root, target=0.05, budget=12)
    folder, record = read_folder(root)
    assert (record.model, record.against) == (study.model, "other")
    assert record.stop == StopRule(12, 0.05)
    db, plan = database.connect(make_url(root)), read_plan(folder.content)
    frames = SetFrames(tables[0], Pixels(), 2)
    items = StudyItems(root, db, frames, plan, study.candidates, folder.class_names, study.scenes)
    items.begin(2, lambda name, n: lambda done: None)
    with db.reading() as connection:
        summary = describe_difference(connection, LiveStudy(study, items))
    assert (summary["state"], summary["asks"]) == ("open", True)
    pools = study.shared.pools
    least, most = -len(pools[1]) / 40, len(pools[0]) / 40
    assert summary["picture"]["trace"] == [(0, least, most)]
    axis = summary["picture"]["axis"]
    assert axis["lowest"] <= least < axis["lowest"] + 0.1
    assert axis["highest"] - 0.1 < most <= axis["highest"]
    assert ("Budget", "12 labels") in summary["numbers"]
    assert f"{study.model} less other" in summary["question"]
    alike = 40 - len(study.candidates)
    assert summary["remarks"][0].startswith(f"No label is needed for {alike} sets")


def test_a_folder_continues_the_study_that_it_holds(tmp_path):
    tables, study = begin(tmp_path / "two", budget=12)
    again = resume_difference(tmp_path / "two", tables, None)
    assert (again.candidates, again.stop) == (study.candidates, study.stop)
    other = plan_difference(*tables, parse_question("pm_k(k=2)"), ONE_CLASS)
    with pytest.raises(UsageError, match="begun with other options"):
        resume_difference(tmp_path / "two", tables, other)
    with pytest.raises(UsageError, match="and not of other less"):
        resume_difference(tmp_path / "two", tables[::-1], None)
    with pytest.raises(UsageError, match="give both runs"):
        resume_study(tmp_path / "two", tables[0], None)
    single = tmp_path / "single"
    single.mkdir()
    planned = plan_study(tables[0], parse_question("pm_k(k=2)"), ONE_CLASS)
    begin_study(single, planned, tables[0], Labelling())
    with pytest.raises(UsageError, match="holds a study of"):
        resume_difference(single, tables, None)
