"""Two detectors on 32 real pictures: verdicts from labels of true boxes, and counts by hand."""

import numpy as np
import pytest
from forked import refused, steadyeye
from label_steps import next_sets
from shown_classes import read_pictures

import steadyeye as se
from steadyeye.core.format import number_of
from steadyeye.metrics.label_studies.files import read_study, write_labels, write_study
from steadyeye.metrics.label_studies.judge import judge
from steadyeye.metrics.label_studies.label_reuse import judge_other_model
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.study import plan_study

DETECTORS = {"yolox_nano": "yolox", "FastestDet": "fastestdet"}
RATES = ("false_positive_rate", "image_error_rate")
SCORE = 0.4


@pytest.fixture(scope="module")
def pictures(test_data):
    """The spec of the pictures, and for each what the annotations say that it shows."""
    return read_pictures(test_data)


@pytest.fixture(scope="module")
def runs(pictures, test_data, tmp_path_factory):
    """A folder with a run of each detector."""
    root = tmp_path_factory.mktemp("detectors")
    for name, decoder in DETECTORS.items():
        path = test_data / "models" / f"{name}.onnx"
        model = f"onnx_detector(path='{path}', decoder='{decoder}')"
        se.evaluate(model, pictures[0], out=root / name)
    return root


def read_tables(runs):
    return {name: se.open_run(runs / name).predictions for name in DETECTORS}


def count_by_hand(table, shows, metric):
    """How many pictures count, and how many have a box above the score."""
    boxes = table.detections
    detected = {name: set() for name in table.ids.tolist()}
    for image, label, score in zip(boxes.image, boxes.label, boxes.score, strict=True):
        if score > SCORE:
            detected[str(table.ids[image])].add(table.classes[label])
    wrong = 0
    for name, classes in detected.items():
        if metric == "false_positive_rate":
            wrong += any(label not in shows[name] for label in classes)
        else:
            wrong += classes != shows[name]
    return wrong, sum(map(bool, detected.values()))


def export(folder, study, labels):
    folder.mkdir(exist_ok=True)
    (folder / "labels.csv").write_bytes(write_labels(labels))
    (folder / "study.json").write_bytes(write_study(study))


def test_some_pictures_show_nothing_and_many_several_classes(pictures):
    sizes = [len(classes) for classes in pictures[1].values()]
    assert len(sizes) == 32
    assert sizes.count(0) == 2
    assert np.mean(np.array(sizes) > 1) > 0.5


@pytest.mark.parametrize("metric", RATES)
def test_all_labelled_the_verdict_is_the_count_by_hand(runs, pictures, metric, tmp_path):
    shows = pictures[1]
    labels = {name: tuple(sorted(classes)) for name, classes in shows.items()}
    tables = read_tables(runs)
    counts = {name: count_by_hand(table, shows, metric) for name, table in tables.items()}
    assert counts["yolox_nano"] != counts["FastestDet"]
    for name, table in tables.items():
        wrong, detected = counts[name]
        assert 0 < wrong < 32
        measured = plan_study(table, parse_question(f"{metric}(score={SCORE})"))
        countable = detected if metric == "false_positive_rate" else 32
        assert len(measured.candidates) == countable
        ends = judge(measured, labels).interval
        assert (ends.low, ends.value, ends.high) == pytest.approx((wrong / 32,) * 3)
        other = next(other for other in DETECTORS if other != name)
        for most, holds in ((wrong, True), (wrong - 1, False)):
            question = parse_question(f"{metric}(score={SCORE}) <= {most / 32}")
            study = plan_study(table, question)
            assert judge(study, labels).holds is holds
            export(tmp_path, study, labels)
            record = read_study(tmp_path / "study.json")
            reused = judge_other_model(record, tables[other], labels)
            assert (reused.interval.low, reused.interval.high) == (counts[other][0] / 32,) * 2
            assert reused.holds == (counts[other][0] <= most)


@pytest.mark.parametrize("metric", RATES)
def test_the_gate_reads_the_labels_of_a_study(runs, pictures, metric, tmp_path):
    """A few labels of YOLOX-nano decide it, and serve FastestDet."""
    shows, table = pictures[1], read_tables(runs)["yolox_nano"]
    wrong, _ = count_by_hand(table, shows, metric)
    for number, holds in ((min(wrong + 9, 31), True), (wrong - 9, False)):
        question = parse_question(f"{metric}(score={SCORE}) <= {number / 32}")
        study, labels = plan_study(table, question), {}
        while names := next_sets(study, labels):
            labels |= {name: tuple(shows[name]) for name in names}
        assert 0 < len(labels) < len(study.candidates)
        export(tmp_path / "labels", study, labels)
        words = ("gate", "yolox_nano", "--labels", tmp_path / "labels")
        done = steadyeye(*words, cwd=runs)
        assert done.returncode == (0 if holds else 1), done.stdout + done.stderr
        text = " ".join(done.stdout.split())
        assert f"shown after {number_of(len(labels), 'label')}" in text
        assert f"{metric}(score={SCORE}) <= " in text
        other = steadyeye("gate", "FastestDet", "--labels", tmp_path / "labels", cwd=runs)
        assert other.returncode in (0, 1), other.stderr
        assert "collected for yolox_nano are used" in " ".join(other.stdout.split())
    assert "a difference needs labels of pm_k" in refused(
        "compare", "yolox_nano", "FastestDet", "--labels", tmp_path / "labels", cwd=runs
    )


@pytest.mark.parametrize("metric", RATES)
def test_the_plan_and_the_gate_without_labels(runs, pictures, metric):
    _, detected = count_by_hand(read_tables(runs)["yolox_nano"], pictures[1], metric)
    question = f"{metric}(score={SCORE})"
    text = steadyeye("plan", "yolox_nano", "--decide", f"{question} <= 20%", cwd=runs, check=True)
    all_of_them = metric == "image_error_rate"
    part = "32 images" if all_of_them else f"{detected} images with a detection above the score"
    assert f"Labels are drawn from the {part}" in " ".join(text.stdout.split())
    # at most as many have a false positive as have a detection
    assert detected < 32
    sure = steadyeye("plan", "yolox_nano", "--decide", f"{question} <= {detected / 32}", cwd=runs)
    assert sure.stdout.startswith("0 labels: ") != all_of_them
    words = ("gate", "yolox_nano", "--require", f"{question} <= {detected / 32}")
    if all_of_them:
        message = refused(*words, cwd=runs)
        assert "needs the labels of a study: without them" in message
        assert "an object may be missed in any image" in message
    else:
        done = steadyeye(*words, cwd=runs)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "shown without a label" in " ".join(done.stdout.split())


def test_map_is_refused_with_the_reason(runs):
    message = refused("plan", "yolox_nano", "--decide", "map >= 20%", cwd=runs)
    assert (
        "map cannot be estimated from few labels: it ranks all detections of all images" in message
    )
