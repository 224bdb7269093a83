"""The time of a frame: since the first frame, whatever time the file has for that one."""

import json

import encoded
import pytest
from review_toys import YES, Review, draw

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations import review_set
from steadyeye.data.sources.every_frame import every_frame
from steadyeye.data.sources.frames import frames
from steadyeye.data.sources.reviewed import reviewed
from steadyeye.data.sources.video import video
from steadyeye.review.interchange.frames import export_set
from steadyeye.review.sampling.sampling import Sampling

TIMES = [40 + 2 * n + (n > 5) for n in range(20)]  # of a 25th of a second, with a gap
SHOWN = [(time - TIMES[0]) / encoded.RATE for time in TIMES]
FORMS = {"mp4": "libx264", "mkv": "mpeg4", "ts": "mpeg2video"}


@pytest.fixture(params=FORMS)
def late(request, tmp_path):
    """A video whose first frame has the time 1.6 s."""
    path = tmp_path / f"late.{request.param}"
    return encoded.write(path, FORMS[request.param], count=20, group=5, times=TIMES)


def test_seconds_count_from_the_first_frame_in_every_source(late):
    around = video(path=str(late), anchors="all", k=0)
    whole = every_frame(path=str(late), cuts="none")
    for source in (around, whole):
        samples = [source[i] for i in range(len(source))]
        by_frame = {sample.tags["frame"]: sample.tags["seconds"] for sample in samples}
        assert [by_frame[n] for n in range(20)] == pytest.approx(SHOWN, abs=1e-3)


def test_a_reviewed_set_keeps_the_seconds(late, tmp_path):
    how = Sampling("set", {"k": 2}, None)
    draw([video(path=str(late), anchors=2, k=2)], tmp_path / "set", how)
    review = Review(review_set.read(tmp_path / "set"), stages={"pairs": 1})
    review.everything("pairs", lambda question: YES)
    with review.db.reading() as c:
        export_set(c, review.folder, review.plan, tmp_path / "out")
    source = reviewed(str(tmp_path / "out"))
    tags = [source[i].tags for i in range(len(source))]
    expected = [SHOWN[tag["frame"]] for tag in tags]
    assert [tag["seconds"] for tag in tags] == pytest.approx(expected, abs=1e-3)


def test_frames_without_times_have_none(tmp_path):
    for number in range(6):
        path = tmp_path / "clip" / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(encoded.still(number))
    source = frames(path=str(tmp_path / "clip"), k=1)
    assert "seconds" not in source.columns
    draw([source], tmp_path / "set", Sampling("set", {"k": 1}, None))
    assert set(review_set.read(tmp_path / "set").frames["seconds"].to_pylist()) == {None}
    read = reviewed(str(tmp_path / "set"))
    assert "seconds" not in read.columns
    assert "seconds" not in read[0].tags


@pytest.mark.parametrize("plan", [None, [], {"across_cuts": "no"}, True])
def test_a_plan_of_a_wrong_type_is_refused_by_who_evaluates_the_set(tmp_path, late, plan):
    draw([video(path=str(late), anchors=1, k=1)], tmp_path / "set", Sampling("set", {}, None))
    path = tmp_path / "set" / "set.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "review": plan}))
    with pytest.raises(UsageError, match=r"set.json' has the review .*; write across_cuts"):
        reviewed(str(tmp_path / "set"), review=False)
