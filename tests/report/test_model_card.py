"""The block of a model card: the Hub's library reads the run's results."""

import re
from dataclasses import replace

import numpy as np
import pytest
from forked import steadyeye
from huggingface_hub import ModelCard

from steadyeye.api import evaluate
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec
from steadyeye.report.model_card import render_card
from steadyeye.runner.collect import evaluate_metrics
from steadyeye.testing import (
    example_detections,
    example_predictions,
    example_source,
    example_sweep,
    tell_example_classes,
)


def read_index(text):
    """{(type, dataset): (value, name, task)} as huggingface_hub reads it."""
    results = ModelCard(text).data.eval_results
    return {
        (r.metric_type, r.dataset_name): (r.metric_value, r.metric_name, r.task_type)
        for r in results
    }


def test_the_library_of_the_hub_reads_the_numbers():
    entry = evaluate_metrics(example_predictions(margin=0.5))
    text = render_card([entry])
    index = read_index(text)
    assert ModelCard(text).data.model_name == entry.predictions.model
    for result in entry.results.values():
        if result.value is not None:
            value, name, task = index[result.name.partition("(")[0], "example"]
            assert value == result.value
            assert name.startswith(f"{result.name} (")
            assert f"n = {result.n:,}" in name
            assert task == "image-classification"
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(lines) == 1 + sum(r.value is not None for r in entry.results.values())


def test_a_detector_is_of_another_task():
    index = read_index(render_card([evaluate_metrics(example_detections())]))
    assert {task for *_, task in index.values()} == {"object-detection"}


def test_a_card_says_what_limits_an_interval_and_what_was_left_out():
    table = example_predictions(margin=0.5)
    failed = np.where(np.arange(len(table)) == 2, "cut off", "")
    table = replace(table, errors=failed, tags={**table.tags, "video": np.full(len(table), "a")})
    text = render_card([evaluate_metrics(table, [Spec("accuracy")])])
    (name,) = (name for _, name, _ in read_index(text).values())
    assert name.endswith(", within this one video only)")
    assert re.search(r"\| accuracy \| [^|]+ \| [^|]+, within this one video only \|", text)
    assert "- example on example: 1 left out: no prediction." in text


def test_a_card_of_degraded_images_says_how_they_were_degraded():
    levels = {"blur": [0, 1, 2, 3, 4], "noise": [0, *range(1, 31)], "rain": [0, 1, 2, 3, 4]}
    sweep = replace(example_sweep(), sweep={"levels": levels, "seed": 0})
    text = render_card([evaluate_metrics(sweep, [Spec("degraded_accuracy")])])
    assert "- example on example: images degraded by blur, rain; levels 1, 2, 3, 4." in text
    assert "- example on example: images degraded by noise; levels 1 … 30, 30 of them." in text


def test_names_with_odd_letters_stay_whole():
    table = replace(example_predictions(), data="a: b | 'c'\nd", model="m #1")
    text = render_card([evaluate_metrics(table, [Spec("accuracy")])])
    assert [dataset for _, dataset in read_index(text)] == ["a: b | 'c'\nd"]
    assert r"| m #1 | a: b \| 'c' d | accuracy |" in text


def test_nothing_measured_is_no_card():
    with pytest.raises(UsageError, match="no metric has a value"):
        render_card([])


def test_the_command_card_writes_a_model_card(tmp_path):
    evaluate(tell_example_classes, example_source(), out=tmp_path / "run")
    file = tmp_path / "card.md"
    done = steadyeye("card", str(tmp_path / "run"), "--metrics", "accuracy", "--out", str(file))
    assert done.returncode == 0, done.stderr
    index = read_index(file.read_text())
    assert [value for value, *_ in index.values()] == [1.0]
