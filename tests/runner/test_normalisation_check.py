"""Models whose input is normalised in another way than in training; here the colour decides."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

import steadyeye as se
from steadyeye.core import plugins
from steadyeye.core.format import percent
from steadyeye.core.spec import parse
from steadyeye.models.runtimes.classifier import Classifier
from steadyeye.runner.normalisation_check import WAYS

SIZE = (8, 8)
COLOURS = np.array(
    [[230, 40, 40], [40, 220, 60], [50, 60, 235], [240, 240, 240], [20, 20, 20], [230, 220, 50]]
)
NAMES = [f"colour {i}" for i in range(len(COLOURS))]
WAY = {words: (mean, std) for words, mean, std in WAYS}
RANDOM = np.random.default_rng(0)


def normalise(colours, mean, std):
    return (colours - np.array(mean)) / np.array(std)


def write_pictures(folder, count):
    """So many of one colour each, in the order of their names; returns colours and labels."""
    labels = np.sort(np.arange(count) % len(COLOURS))
    colours = np.clip(COLOURS[labels] + RANDOM.integers(-15, 16, (count, 3)), 0, 255)
    for number, (label, colour) in enumerate(zip(labels, colours, strict=True)):
        path = folder / "pictures" / NAMES[label] / f"{number:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.broadcast_to(colour.astype(np.uint8), (*SIZE, 3))).save(path)
    return colours, labels


def save_network(path, mean, std, order="rgb", takes_bytes=False):
    """The class whose normalised colour is nearest to the mean of the input: 2 c·x − c·c."""
    centres = normalise(COLOURS, mean, std)[:, :: 1 if order == "rgb" else -1]
    weights = {"matrix": 2 * centres.T, "bias": -(centres**2).sum(axis=1)}
    nodes = [
        helper.make_node("GlobalAveragePool", ["images"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "matrix", "bias"], ["scores"]),
    ]
    shapes = {"images": [1, 3, *SIZE], "scores": [1, len(COLOURS)]}
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
        for name, shape in shapes.items()
    ]
    values = [numpy_helper.from_array(v.astype(np.float32), name) for name, v in weights.items()]
    graph = helper.make_graph(nodes, "nearest", *ends, values)
    if takes_bytes:
        graph.node.insert(0, helper.make_node("Cast", ["bytes"], ["images"], to=TensorProto.FLOAT))
        graph.input[0].name = "bytes"
        graph.input[0].type.tensor_type.elem_type = TensorProto.UINT8
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)


def count_right(colours, labels, trained, used):
    """The share of colours whose class is the nearest one, normalised as `used`."""
    centres, inputs = normalise(COLOURS, *trained), normalise(colours, *used)
    distances = ((inputs[:, None] - centres) ** 2).sum(axis=2)
    return np.mean(distances.argmin(axis=1) == labels)


def write_spec(folder, mean, std, order="rgb"):
    (folder / "classes.json").write_text(json.dumps(NAMES))
    recipe = {"size": 8, "resize": 8, "mean": list(mean), "std": list(std), "order": order}
    return f"onnx(path='{folder}/net.onnx', classes='{folder}/classes.json', recipe={recipe})"


def run(folder, mean, std, order="rgb", **options):
    spec = write_spec(folder, mean, std, order)
    return se.evaluate(spec, f"image_folder(root='{folder}/pictures')", **options)


@pytest.mark.parametrize("used", WAY)
@pytest.mark.parametrize("trained", ["values in 0…1", "ImageNet's mean alone"])
def test_the_normalisation_of_training_is_named_where_it_matters(tmp_path, trained, used):
    colours, labels = write_pictures(tmp_path, 48)
    save_network(tmp_path / "net.onnx", *WAY[trained])
    warning = run(tmp_path, *WAY[used]).predictions.warning
    rest = np.arange(48) % 3 > 0

    def share(way):
        return count_right(colours[rest], labels[rest], WAY[trained], WAY[way])

    assert share(trained) == 1
    if share(used) > 0.7:
        assert warning == ""
    else:
        (best,) = (way for way in WAY if f"with {way}, " in warning)
        assert share(best) >= share(used) + 0.3
        assert f"with {best}, {percent(share(best))} of 32 images are right" in warning
        assert f"right instead of {percent(share(used))};" in warning


def test_it_is_said_first_and_stays_after_a_resume(tmp_path):
    write_pictures(tmp_path, 48)
    save_network(tmp_path / "net.onnx", *WAY["values in −1…1"])
    out = str(tmp_path / "run")
    first = run(tmp_path, *WAY["values in 0…255"], out=out)
    again = run(tmp_path, *WAY["values in 0…255"], out=out)
    assert first.predictions.warning == again.predictions.warning != ""
    assert first.predictions.warning in first.predictions.notes
    first.report(tmp_path / "report.md")
    head = (tmp_path / "report.md").read_text().split("| metric")[0]
    assert "T" + first.predictions.warning[1:] in head


def test_a_sweep_is_checked_on_undegraded_images(tmp_path):
    write_pictures(tmp_path, 30)
    save_network(tmp_path / "net.onnx", *WAY["values in 0…1"])
    sweep = run(tmp_path, *WAY["values in 0…255"], operators="fade_black", levels="0,30")
    plain = run(tmp_path, *WAY["values in 0…255"])
    assert sweep.predictions.warning == plain.predictions.warning != ""


@pytest.fixture
def predicted(monkeypatch):
    """The number of images of each call of a network."""
    counts, infer = [], Classifier._infer

    def count_and_infer(model, prepared):
        scores = infer(model, prepared)
        counts.append(len(scores))
        return scores

    monkeypatch.setattr(Classifier, "_infer", count_and_infer)
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("sweep", [{}, {"operators": "fade_black", "levels": "0,30"}])
@pytest.mark.parametrize("used", ["values in 0…1", "values in 0…255"])
def test_where_all_is_cached_no_network_runs_again(tmp_path, predicted, used, sweep):
    write_pictures(tmp_path, 48)
    save_network(tmp_path / "net.onnx", *WAY["values in 0…1"])

    def run_with(cache):
        predicted.clear()
        out = tmp_path / str(len(runs))
        warning = run(tmp_path, *WAY[used], cache=str(cache), out=out, **sweep).predictions.warning
        runs.append((warning, sum(predicted)))
        return [path.read_bytes() for path in sorted(out.rglob("*.arrow"))]

    runs = []
    assert run_with("off") == run_with(tmp_path / "cache") == run_with(tmp_path / "cache") != []
    (off, cold, warm), passes = zip(*runs, strict=True)
    assert off == cold == warm
    assert bool(warm) == (used == "values in 0…255")
    # the black image that a network is tried with before a run
    assert passes[2] == 1
    assert 48 < passes[1] <= passes[0]


def test_another_normalisation_has_another_fingerprint(tmp_path):
    save_network(tmp_path / "net.onnx", *WAY["values in 0…1"])
    model = plugins.build("models", parse(write_spec(tmp_path, *WAY["values in 0…1"])))
    others = [model.with_normalisation(mean, std) for mean, std in WAY.values()]
    others.append(model.with_reversed_channels())
    assert len({model.fingerprint, *(other.fingerprint for other in others)}) == len(WAYS) + 2


def test_few_images_and_images_without_labels_say_nothing(tmp_path):
    write_pictures(tmp_path, 29)
    save_network(tmp_path / "net.onnx", *WAY["values in 0…1"])
    assert run(tmp_path, *WAY["values in 0…255"]).predictions.warning == ""


@pytest.mark.parametrize("seed", range(10))
def test_a_network_that_learned_nothing_is_not_warned_of(tmp_path, seed):
    """Whatever is tried, its predictions have nothing to do with the labels."""
    random = np.random.default_rng(seed)
    _, labels = write_pictures(tmp_path, 48)
    save_network(tmp_path / "net.onnx", *WAY["values in 0…1"])
    pictures = sorted((tmp_path / "pictures").rglob("*.png"))
    for picture, label in zip(pictures, random.permutation(labels), strict=True):
        picture.rename(tmp_path / "pictures" / NAMES[label] / f"again {picture.name}")
    assert run(tmp_path, *WAY["values in 0…255"]).predictions.warning == ""


def test_a_network_whose_input_is_bytes_runs_however_often_it_is_wrong(tmp_path):
    """It refuses every other normalisation."""
    _, labels = write_pictures(tmp_path, 48)
    pixels = WAY["values in 0…255"]
    save_network(tmp_path / "net.onnx", *pixels, order="bgr", takes_bytes=True)
    wrong = run(tmp_path, *pixels)
    right = count_right(COLOURS[labels][:, ::-1], labels, pixels, pixels)
    assert right < 0.7
    assert wrong.accuracy().value == pytest.approx(right)
    assert "normalised" not in wrong.predictions.warning


@pytest.mark.parametrize("trained", ["rgb", "bgr"])
@pytest.mark.parametrize("used", ["rgb", "bgr"])
def test_channels_in_another_order_than_in_training_are_named(tmp_path, trained, used):
    """Nothing was said: of six colours two were taken for each other."""
    colours, labels = write_pictures(tmp_path, 48)
    way = WAY["values in 0…1"]
    save_network(tmp_path / "net.onnx", *way, order=trained)
    warning = run(tmp_path, *way, order=used).predictions.warning
    rest = np.arange(48) % 3 > 0
    share = count_right(colours[rest][:, ::-1], labels[rest], way, way)
    words = f"with red and blue exchanged, {percent(1.0)} of 32 images are right instead of "
    assert (f"{words}{percent(share)}; check the order" in warning) == (trained != used)
    assert bool(warning) == (trained != used)


def test_channels_in_the_order_of_the_recipe(tmp_path):
    write_pictures(tmp_path, 30)
    save_network(tmp_path / "net.onnx", *WAY["values in 0…1"], order="bgr")
    assert run(tmp_path, *WAY["values in 0…1"], order="bgr").accuracy().value == 1
    assert run(tmp_path, *WAY["values in 0…1"]).accuracy().value < 1


@pytest.mark.slow
def test_a_detector_whose_values_are_divided_by_255(test_data, tmp_path):
    """YOLOX takes 0…255."""
    coco, network = test_data / "coco" / "tinycoco", test_data / "models" / "yolox_nano.onnx"
    annotations = coco / "annotations" / "instances_train2017.json"
    data = f"coco(annotations='{annotations}', images='{coco}/images/train2017')"
    spec = f"onnx_detector(path='{network}', decoder='yolox', classes='coco', recipe=%r)"
    wrong = se.evaluate(spec % {"std": [255.0] * 3}, data).predictions.warning
    model = plugins.build("models", parse(spec % {"mean": (1, 2, 3), "order": "rgb"}))
    image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    (own, _), (other, _) = (
        candidate.stages().prepare(image) for candidate in (model, model.with_reversed_channels())
    )
    np.testing.assert_array_equal(other, own[:, ::-1])
    right = se.evaluate(spec % {}, data).predictions.warning
    assert "with values in 0…255, " in wrong
    assert f"of 20 images are right instead of {percent(0.0)}" in wrong
    assert right == ""
