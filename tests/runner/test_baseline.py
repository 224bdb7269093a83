"""A sweep of the images that a reference model gets right, from the command line."""

import json

import pytest
from forked import refused, steadyeye
from two_class_pictures import DATA, name_model, write_pictures

import steadyeye as se

MODEL = name_model("always_white")
WORDS = ("degrade", "--model", MODEL, "--data", DATA, "--operators", "posterize")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(write_pictures(tmp_path))
    return tmp_path


@pytest.mark.slow
def test_the_reference_model_is_run_first_and_its_images_are_swept(folder):
    words = [*WORDS, "--levels", "0:30:30"]
    for _ in range(2):  # the second time everything is there
        done = steadyeye(*words, "--baseline", name_model("by_brightness"), "--out", "run")
        assert done.returncode == 0, done.stderr
    reference = se.open_run(folder / "run-baseline").predictions
    right = set(reference.ids[reference.right].tolist())
    assert len(right) == 11
    run = se.open_run(folder / "run")
    assert set(run.predictions.tags["image"].tolist()) == right
    # all count, also those that `always_white` gets wrong undegraded: five of eleven are white
    assert run.degraded_accuracy(images="all").value == 5 / 11
    assert json.loads((folder / "run" / "run.json").read_text())["job"]["baseline"] == (
        "run-baseline"
    )
    assert "5 of 11" in done.stdout or "45.5" in done.stdout
    again = steadyeye(*words, "--baseline", "run-baseline", "--out", "again")
    assert again.returncode == 0, again.stderr
    assert se.open_run(folder / "again").degraded_accuracy(images="all").value == 5 / 11


def test_a_search_has_no_baseline(folder):
    message = refused(*WORDS, "--fast", "--baseline", name_model("by_brightness"), "--out", "run")
    assert "fast=true searches among the images that each model gets right itself" in message
    assert not (folder / "run-baseline").exists()
