"""A database with the review of another set: its decisions do not apply to these pictures."""

from dataclasses import replace

import pytest
from forked import steadyeye
from review_boxes import candidates, write
from review_toys import GOOD, YES, Review, draw, source

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations import review_set
from steadyeye.review.sampling.sampling import sample_boxes
from steadyeye.review.workflow import queue


class Changed:
    """A source whose samples are changed."""

    def __init__(self, inner, change):
        self.inner, self.change = inner, change

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, number):
        return self.change(self.inner[number])


def brighten(sample):
    """The same frame of another recording: its names are the same, its pixels are not."""
    return replace(sample, image=lambda: sample.image() + 100)


def relabel(sample):
    return replace(sample, truth=(1,))


def review_all(folder, **how):
    review = Review(folder, **how)
    review.everything("anchors", lambda payload: GOOD)
    review.everything("pairs", lambda payload: YES)
    return review


@pytest.fixture
def review(tmp_path):
    draw([source()], tmp_path / "set")
    return review_all(review_set.read(tmp_path / "set"))


@pytest.mark.parametrize("sources", [[source(3, 2)], [source(1, 2)], [source(2, 1)]])
def test_a_set_of_other_frames_is_refused(review, tmp_path, sources):
    other = tmp_path / "other"
    draw(sources, other)
    with pytest.raises(UsageError, match=r"the database holds .*, and not the review of '.*other'"):
        Review(review_set.read(other), 0, url=review.url)


def test_frames_of_the_same_names_that_show_something_else_are_refused(review, tmp_path):
    other = tmp_path / "other"
    draw([Changed(source(), brighten)], other)
    folder = review_set.read(other)
    assert folder.frames["id"].to_pylist() == review.folder.frames["id"].to_pylist()
    with pytest.raises(UsageError, match="'v0/0/-2' of another set"):
        Review(folder, 0, url=review.url)


def test_the_same_pictures_under_other_labels_are_refused(review, tmp_path):
    """Who said that the label is right said it of the label that was shown."""
    other = tmp_path / "other"
    draw([Changed(source(), relabel)], other)
    with pytest.raises(UsageError, match="the database holds decisions on other tables"):
        Review(review_set.read(other), 0, url=review.url)


def test_another_plan_of_the_same_set_continues(review):
    Review(review.folder, 0, url=review.url, minutes=5, across_cuts=True)
    assert all(verdict.accepted for verdict in review.verdicts().values())


@pytest.mark.parametrize("votes", [{"anchors": 2, "pairs": 1}, {"anchors": 1, "pairs": 3}])
def test_other_numbers_of_votes_are_refused(review, votes):
    """What one person accepted would else be exported as what as many accepted as the plan says."""
    stage = next(name for name, number in votes.items() if number != 1)
    line = rf"review\.stages\.{stage} is {votes[stage]}, and the review began with 1; put it back"
    with pytest.raises(UsageError, match=line):
        Review(review.folder, 0, url=review.url, stages=votes)


def test_a_gold_question_that_was_taken_out_is_refused(review):
    """Its known answer would else go on to hold in the set, whatever people say."""
    pair = review.folder.frames["id"].to_pylist()[0]
    answers = {"pairs": {pair: {"correct": "yes", "similar": "no", "reasons": ["blur"]}}}
    Review(review.folder, 0, url=review.url, gold={"answers": answers})
    assert not review.verdicts()[pair].accepted
    with pytest.raises(UsageError, match=rf"gold\.answers\.pairs no longer has '{pair}'"):
        Review(review.folder, 0, url=review.url, minutes=5)
    answers["pairs"][pair] = YES
    Review(review.folder, 0, url=review.url, gold={"answers": answers})
    assert review.verdicts()[pair].accepted


def test_other_boxes_are_refused(tmp_path):
    content = candidates()
    sample_boxes(*write(tmp_path, content))
    review = Review(review_set.read(tmp_path / "set"), 0, stages={"classification": 1})
    moved = candidates()
    moved["annotations"][0]["bbox"] = [2, 2, 20, 20]
    sample_boxes(*write(tmp_path / "again", moved))
    folder = review_set.read(tmp_path / "again" / "set")
    with pytest.raises(UsageError, match="'10' of another set"), review.db.writing() as c:
        queue.add_set_items(c, folder, review.plan)


@pytest.mark.slow
def test_every_command_refuses_it_in_one_line(review, tmp_path):
    other = tmp_path / "other"
    draw([Changed(source(), brighten)], other)
    review.db.engine.dispose()
    (tmp_path / "none.json").write_text("[]")
    for command, *more in (
        ("review", "--port", "0"),
        ("review-status",),
        ("review-audit",),
        ("review-export", "--out", tmp_path / "out"),
        ("review-import", tmp_path / "none.json", "--from", "label_studio"),
    ):
        done = steadyeye(command, other, "--database", review.url, *more)
        assert done.returncode == 2, done
        line = done.stderr.strip()
        assert line.count("\n") == 0, line
        assert "and not the review of" in line, line
    assert not (tmp_path / "out").exists()
