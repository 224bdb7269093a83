"""What a watch says of measures that it has no value of."""

import numpy as np
import pytest
from forked import refusal, steadyeye
from test_watch import ENV, GOOD, film, watch_file

from steadyeye.core.errors import UsageError
from steadyeye.core.types import Classes
from steadyeye.models.runtimes.python_function import FunctionClassifier
from steadyeye.watch.promises import read_promise
from steadyeye.watch.session import SPARSE

UNKNOWN = "not measured: blink_rate <= 5.0 % (no block has a value)"


@pytest.mark.parametrize("block", [2.0, 3600.0])
def test_a_promise_that_sparse_frames_cannot_tell_of_is_named(tmp_path, block):
    """Of a short file too, whose only block ends with it: it ended as if nothing was broken."""
    lines = []
    promises = (read_promise("blink_rate <= 5%"), read_promise("flip_rate <= 90%"))
    watch = watch_file(
        film(tmp_path / "a.mp4", GOOD),
        tmp_path / "w",
        say=lines.append,
        promises=promises,
        rate=2.0,
        block=block,
        period=3600.0,
        days=20.0,
    )
    assert "blink_rate" not in watch.latest["measures"]
    assert lines == [SPARSE, UNKNOWN]


def test_a_promise_about_objects_is_named_where_there_are_none(tmp_path):
    lines = []
    path = film(tmp_path / "a.mp4", np.zeros(40, int))
    watch_file(path, tmp_path / "w", say=lines.append, promises=(read_promise("blink_rate <= 5%"),))
    assert lines == [UNKNOWN]


def test_a_promise_about_objects_needs_a_detector(tmp_path):
    """Of a stream nobody would ever have been told: the page said that it was kept."""

    def scores(images):
        return np.full((len(images), 2), 0.5, dtype=np.float32)

    model = FunctionClassifier(scores, Classes(("a", "b")), name="half")
    path, promise = film(tmp_path / "a.mp4", GOOD[:5]), read_promise("class_change_rate <= 5%")
    with pytest.raises(UsageError, match=r"5.0 %' needs a detector, and half is a classifier;"):
        watch_file(path, tmp_path / "w", model, promises=(promise,))


def test_a_promise_that_was_measured_is_not_named(tmp_path):
    lines = []
    path = film(tmp_path / "a.mp4", GOOD[:40])
    watch_file(path, tmp_path / "w", say=lines.append, promises=(read_promise("blink_rate <= 5%"),))
    assert lines == []


def test_the_command_refuses_a_promise_about_objects_for_a_classifier(tmp_path):
    film(tmp_path / "a.mp4", GOOD[:5])
    (tmp_path / "three.json").write_text('["dark", "bright", "number"]')
    model = "callable(path='toy_networks:brightness', classes='three.json')"
    words = ("watch", "a.mp4", "--model", model, "--no-page", "--out", "w", "--alert")
    done = steadyeye(*words, "blink_rate <= 5%", cwd=tmp_path, env=ENV)
    assert "'blink_rate <= 5.0 %' needs a detector" in refusal(done)
    assert steadyeye(*words, "flip_rate <= 5%", cwd=tmp_path, env=ENV).returncode == 0
