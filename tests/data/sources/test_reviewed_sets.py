"""Sets with known reviews, from hand-made files through a complete run to the report."""

import json

import cv2
import numpy as np
import pytest
from review_toys import CLASSES, GOOD, NO, YES, Review, draw, source

import steadyeye as se
from steadyeye.core import plugins
from steadyeye.core.spec import parse
from steadyeye.data.annotations import review_set
from steadyeye.data.sources.reviewed import reviewed
from steadyeye.data.sources.ytbb_robust import ytbb_robust
from steadyeye.report.build import document
from steadyeye.review.interchange.frames import export_set
from steadyeye.review.sampling.sampling import Sampling

CAT, CAR = 7, 23
BRIGHT = {CAT: 80, CAR: 230}
# video_ms → (what is judged, class of the anchor, what the frames around it look like)
SETS = {
    "aa_100": ("bad", CAT, [CAR, CAR, CAR]),
    "bb_100": ("good", CAT, [CAT, CAT, CAR]),
    "cc_100": ("good", CAR, [CAR, CAR, CAR]),
    "dd_100": ("unsure", CAR, [CAR, CAR, CAT]),
}


def brightness(images):
    """A classifier of 24 classes that tells cats, which are dark, from cars."""
    scores = np.zeros((len(images), 24), dtype=np.float32)
    cars = images.mean(axis=(1, 2, 3)) > 150
    scores[np.arange(len(images)), np.where(cars, CAR, CAT)] = 0.9
    return scores


@pytest.fixture
def root(tmp_path):
    """A folder laid out as the release, with the reviews, maps and frames of `SETS`."""
    meanings = ["good", "unsure", "bad"]
    annotations = [
        {"key": f"{name}/frame-11.jpg", "labels": [meanings.index(review)]}
        for name, (review, _, _) in SETS.items()
    ]
    metadata = tmp_path / "metadata"
    metadata.mkdir()
    reviews = {"labels": meanings, "annotations": annotations}
    (metadata / "anchor_labels.json").write_text(json.dumps(reviews))
    # the CSV has car as 22
    lines = [f"{n.replace('_', ',')},{22 if c == CAR else c}" for n, (_, c, _) in SETS.items()]
    anchors = metadata / "ytbb_robustness_test_anchors_full.csv"
    anchors.write_text("\n".join(["ytid,time_ms,label", *lines]))
    for name, (_, _, looks) in SETS.items():
        folder = tmp_path / "frames" / name
        folder.mkdir(parents=True)
        for number, label in enumerate(looks, start=10):
            image = np.full((64, 64, 3), BRIGHT[label] + (name[0] == "b") * 10, dtype=np.uint8)
            cv2.imwrite(str(folder / f"frame-{number}.jpg"), image)
    return tmp_path


@pytest.mark.slow
def test_the_review_leaves_all_numbers_but_its_own_section_as_they_were(root, tmp_path):
    spec = f"ytbb_robust(root='{root}', k=1"
    plain = se.evaluate(brightness, f"{spec})", out=tmp_path / "plain")
    whole = se.evaluate(brightness, f"{spec}, review=False)", out=tmp_path / "whole")
    assert len(plain.predictions) == len(whole.predictions) == 6
    assert len(whole.predictions.candidates) == 12
    assert whole.results() == plain.results()
    assert (plain.accuracy().value, plain.pm_k(1).value) == (1, 0.5)

    titles = [[s.title for s in document([run.folder]).sections] for run in (plain, whole)]
    (section,) = [s for s in document([whole.folder]).sections if s.place == 55]
    assert [title for title in titles[1] if title != section.title] == titles[0]
    rows = [row for row in section.tables[0].rows if row[1] == "brightness"]
    # without the review: the bad anchor is wrong, and the unsure one breaks
    assert [(row[0], row[2], row[3][:4], row[4][:4], row[5][:4]) for row in rows] == [
        ("without review", "4", "75.0", "25.0", "50.0"),
        ("with review", "2", "100.", "50.0", "50.0"),
    ]


def test_pictures_of_reviewed_sets_are_of_their_own_frames(root, tmp_path):
    """Rows of the source and rows of the table differ once a review has left some out."""
    spec = f"ytbb_robust(root='{root}', k=1, review=False)"
    se.evaluate(brightness, spec, out=tmp_path / "run")
    greys = sorted(
        round(float(cv2.imread(str(file)).mean()), -1)
        for file in (tmp_path / "run" / "pictures").glob("*.jpg")
    )
    # bb's anchor and its last frame, and the frame before the flip, which is the anchor
    assert greys == [90, 240]


def test_without_review_the_rejected_anchors_are_tagged(root):
    whole_set = ytbb_robust(str(root), k=1, review=False)
    assert [whole_set[i].tags["accepted"] for i in range(0, 12, 3)] == [0, 1, 1, 0]
    assert "accepted" in whole_set.columns
    assert "accepted" not in ytbb_robust(str(root), k=1)[0].tags
    assert whole_set.fingerprint != ytbb_robust(str(root), k=1).fingerprint


def test_rejected_frames_are_not_degraded(root, tmp_path):
    spec = f"ytbb_robust(root='{root}', k=1, review=False)"
    with pytest.raises(se.UsageError, match="degrade accepted frames only"):
        se.evaluate(brightness, spec, operators="global_blur", levels="0:1", out=tmp_path / "run")


@pytest.mark.slow
def test_the_released_reviews_decide_which_frames_are_accepted(test_data):
    data = f"ytbb_robust(root='{test_data / 'ytbb_robust'}'"
    plain = plugins.build("sources", parse(f"{data})"))
    whole = plugins.build("sources", parse(f"{data}, review=False)"))
    anchors = [m for m in whole.members if m.offset == 0]
    # of 2,170 called good one is also called unsure
    assert (len(anchors), sum(m.accepted is False for m in anchors)) == (2_467, 298)
    assert [m.id for m in whole.members if m.accepted] == list(plain.ids)


def grey(images):
    """Calls a toy frame of one of these greys a dog, and all others a cat."""
    dogs = [any(abs(image.mean() - level) < 1 for level in (28, 52, 100, 136)) for image in images]
    return np.where(np.array(dogs)[:, None], [[0.1, 0.9]], [[0.9, 0.1]]).astype(np.float32)


@pytest.fixture
def export(tmp_path):
    """Four sets of five frames, greys 20, 60, 100 and 140 and 4 apart; the third is rejected."""
    draw([source(4)], tmp_path / "set", Sampling("setB", {}, CLASSES))
    folder = review_set.read(tmp_path / "set")
    review = Review(folder)
    bad = {"quality": "bad", "labels": []}
    review.everything("anchors", lambda question: bad if question["video"] == "v2" else GOOD)
    review.everything("pairs", lambda s: NO if (s["video"], s["offset"]) == ("v0", 2) else YES)
    review.everything("joint", lambda question: NO)
    with review.db.reading() as c:
        export_set(c, folder, review.plan, tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.slow
def test_unreviewed_numbers_are_of_all_that_was_sampled(export, tmp_path):
    """v2's anchor is wrong, v0 breaks at its rejected frame, v1 and v3 at frames that stay."""
    reviewed_run = se.evaluate(grey, f"reviewed(root='{export}')", out=tmp_path / "kept")
    every = se.evaluate(grey, f"reviewed(root='{export}', review=False)", out=tmp_path / "all")
    assert (reviewed_run.predictions.data, every.predictions.data) == ("setB", "setB, unreviewed")
    assert (len(reviewed_run.predictions), len(every.predictions)) == (14, 20)
    assert (reviewed_run.accuracy().value, reviewed_run.accuracy().n) == (1, 3)
    assert (every.accuracy().value, every.accuracy().n) == (3 / 4, 4)
    assert (reviewed_run.pm_k(2).value, every.pm_k(2).value) == (1 / 3, 0)
    (section,) = [s for s in document([every.folder]).sections if s.place == 55]
    own = [row for row in section.tables[0].rows if row[1] == "grey"]
    assert [(row[0], row[2], row[3][:4], row[4][:4]) for row in own] == [
        ("without review", "4", "75.0", "0.0\u202f"),
        ("with review", "3", "100.", "33.3"),
    ]


def test_a_part_that_is_reviewed_says_so(tmp_path):
    draw([source(2)], tmp_path / "set", Sampling("setB", {}, CLASSES))
    folder = review_set.read(tmp_path / "set")
    review = Review(folder)
    review.everything("anchors", lambda question: GOOD)
    (served,) = review.next("pairs")
    review.say(served, YES)
    with review.db.reading() as c:
        export_set(c, folder, review.plan, tmp_path / "out", partial=True)
    part = reviewed(root=str(tmp_path / "out"))
    assert (part.name, len(part)) == ("setB, partly reviewed", 3)
    assert "7 of 10 frames not decided yet" in " ".join(part.notes)
    assert reviewed(root=str(tmp_path / "set")).name == "setB"
    every = reviewed(root=str(tmp_path / "out"), review=False)
    assert (every.name, len(every)) == ("setB, unreviewed", 10)
