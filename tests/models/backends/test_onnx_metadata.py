"""Classifiers whose ONNX file names its classes and its task, as Ultralytics exports them."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import tiny_onnx
from PIL import Image

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.runner.short_forms import expand_model

LETTERS = tuple("abcdefghij")
NAMES = str(dict(enumerate(LETTERS)))


def save(path, **metadata):
    model = tiny_onnx.make_classifier()
    onnx.helper.set_model_props(model, metadata)
    onnx.save(model, path)
    return str(path)


def build(text):
    return plugins.build("models", parse(text))


def test_the_classes_are_those_that_the_file_names(tmp_path):
    path = save(tmp_path / "net.onnx", names=NAMES)
    (tmp_path / "classes.txt").write_text("\n".join("klmnopqrst"))
    assert expand_model(path) == f"onnx(path={path!r})"
    assert build(f"onnx(path={path!r})").classes.names == LETTERS
    chosen = build(f"onnx(path={path!r}, classes='{tmp_path}/classes.txt')")
    assert chosen.classes.names == tuple("klmnopqrst")


@pytest.mark.parametrize("names", ["{0: 'a', 1: 'b'}", "{1: 'a'}", "[", "", "open('x')"])
def test_names_that_are_not_those_of_the_outputs_are_not_taken(tmp_path, names):
    path = save(tmp_path / "net.onnx", names=names)
    with pytest.raises(UsageError, match=r"the names of the 10 classes of .* are not known"):
        expand_model(path)
    with pytest.raises(UsageError, match=r"the classes of .* are not known"):
        build(f"onnx(path={path!r})")


@pytest.mark.parametrize("task", ["classify", "other"])
def test_a_classifier_of_ultralytics_gets_the_images_that_it_was_trained_on(tmp_path, task):
    """Its `classify_transforms`: the short side bilinear to the input's, the centre, 0…1."""
    path = save(tmp_path / "net.onnx", names=NAMES, task=task)
    image = np.random.default_rng(1).integers(0, 256, (40, 64, 3), dtype=np.uint8)
    small = Image.fromarray(image).resize((51, 32), Image.Resampling.BILINEAR)
    cut = np.asarray(small)[:, 10:42].transpose(2, 0, 1)[None] / np.float32(255)
    (scores,) = ort.InferenceSession(path).run(None, {"images": cut})
    expected = np.exp(scores) / np.exp(scores).sum()
    (row,) = build(f"onnx(path={path!r})")([image])
    is_near = np.allclose(row, expected, atol=0.01)
    assert is_near == (task == "classify")
