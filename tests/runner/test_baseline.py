"""A sweep of the images that a reference model gets right, from the command line."""

import json

import numpy as np
import pytest
from forked import refused, steadyeye
from PIL import Image

import steadyeye as se

CODE = """
import numpy as np
def bright(images):
    light = images.mean(axis=(1, 2, 3)) / 255
    return np.stack([1 - light, light], axis=1)
def white(images):
    return np.tile([0.0, 1.0], (len(images), 1))
"""
DATA = "image_folder(root='images')"


def spec(name):
    return f"callable(path='brightness:{name}', classes='classes.json')"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Twelve pictures, one of which `bright` gets wrong."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "brightness.py").write_text(CODE)
    (tmp_path / "classes.json").write_text('["black", "white"]')
    for number in range(12):
        pictures = tmp_path / "images" / ("black" if number < 6 else "white")
        pictures.mkdir(parents=True, exist_ok=True)
        pixels = np.full((8, 8, 3), 20 if number < 7 else 220, np.uint8)
        Image.fromarray(pixels).save(pictures / f"{number}.png")
    return tmp_path


def test_the_reference_model_is_run_first_and_its_images_are_swept(folder):
    words = ["degrade", "--model", spec("white"), "--data", DATA, "--levels", "0:30:30"]
    words += ["--operators", "posterize"]
    for _ in range(2):  # the second time everything is there
        done = steadyeye(*words, "--baseline", spec("bright"), "--out", "run")
        assert done.returncode == 0, done.stderr
    reference = se.open_run(folder / "run-baseline").predictions
    right = set(reference.ids[reference.right].tolist())
    assert len(right) == 11
    run = se.open_run(folder / "run")
    assert set(run.predictions.tags["image"].tolist()) == right
    # all of them count, those that `white` gets wrong undegraded too: five of eleven are white
    assert run.degraded_accuracy(images="all").value == 5 / 11
    assert json.loads((folder / "run" / "run.json").read_text())["job"]["baseline"] == (
        "run-baseline"
    )
    assert "5 of 11" in done.stdout or "45.5" in done.stdout
    again = steadyeye(*words, "--baseline", "run-baseline", "--out", "again")
    assert again.returncode == 0, again.stderr
    assert se.open_run(folder / "again").degraded_accuracy(images="all").value == 5 / 11


def test_a_search_has_no_baseline(folder):
    words = ["degrade", "--model", spec("white"), "--data", DATA, "--operators", "posterize"]
    said = refused(*words, "--fast", "--baseline", spec("bright"), "--out", "run")
    assert "fast=true searches among the images that each model gets right itself" in said
    assert not (folder / "run-baseline").exists()
