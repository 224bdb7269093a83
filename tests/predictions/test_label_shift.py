"""Labels that are those of the next or the previous video or image."""

import numpy as np
import pytest
from PIL import Image

import steadyeye as se
from steadyeye.core.format import percent
from steadyeye.predictions.label_shift import _compare

NAMES = ("ant", "bee", "cat", "dog")


def evaluate(labels, answers):
    """The warning of a run on one image a label, whose pixels say what is predicted."""
    data = [
        (np.full((2, 2, 3), answer, np.uint8), NAMES[label])
        for label, answer in zip(labels, answers, strict=True)
    ]

    def predict(images):
        return np.eye(len(NAMES))[images[:, 0, 0, 0]]

    return se.evaluate(predict, data, classes=NAMES).predictions.warning


@pytest.fixture
def truth():
    return np.random.default_rng(3).integers(0, len(NAMES), 60)


@pytest.mark.parametrize(("words", "shift"), [("next", 1), ("previous", -1)])
def test_labels_of_a_neighbour_are_named(truth, words, shift):
    """A list that began one too early gave a low accuracy, without a word."""
    labels = np.roll(truth, shift)
    inner = slice(None, -1) if shift == 1 else slice(1, None)
    right = percent(np.mean(labels[inner] == truth[inner]))
    warning = evaluate(labels, truth)
    assert f"with that of the {words} sample, {percent(1.0)} of 59 samples are right" in warning
    assert f"right instead of {right};" in warning
    assert evaluate(truth, truth) == ""


@pytest.mark.parametrize("seed", range(20))
def test_a_model_that_guesses_is_not_warned_of(seed):
    """Also where it answers in two of four classes, and where labels come in runs."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 4, 60)
    answers = random.integers(0, 2 + seed % 3, 60)
    assert evaluate(np.sort(labels) if seed % 2 else labels, answers) == ""


def test_classes_that_are_taken_for_each_other_are_no_shift():
    """The next label is right for half of them, and their own for none; so is any other one."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 60)
    answers = np.where(random.random(60) < 0.1, labels, 1 - labels)
    assert _compare(np.eye(2, dtype=bool)[answers], labels, True) == ""


def test_ten_images_are_too_few_to_say_it(truth):
    assert evaluate(np.roll(truth, 1)[:10], truth[:10]) == ""


def test_rows_of_a_table_of_videos_that_are_shifted(tmp_path):
    """Forty videos of two frames, each with the label of the one before it."""
    truth = np.random.default_rng(1).permutation(np.arange(40) % 4)
    for video, level in enumerate(truth):
        for frame in range(2):
            path = tmp_path / "frames" / f"clip{video:02d}" / f"{frame}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.full((2, 2, 3), level, np.uint8)).save(path)

    def warn(labels):
        rows = [f"clip{video:02d},{NAMES[label]}" for video, label in enumerate(labels)]
        (tmp_path / "labels.csv").write_text("\n".join(["video,labels", *rows]))
        data = f"frames(path='{tmp_path}/frames', k=1, labels='{tmp_path}/labels.csv')"
        run = se.evaluate(lambda x: np.eye(4)[x[:, 0, 0, 0]], data, classes=NAMES)
        return run.predictions.warning

    assert warn(truth) == ""
    warning = warn(np.roll(truth, 1))
    assert f"with that of the next video, {percent(1.0)} of 39 videos are right" in warning
