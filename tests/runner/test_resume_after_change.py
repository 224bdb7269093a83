"""A repeated command after one change names the change, in the user's words."""

import json
import os
import shutil

import explain_toys
import light_toys
import pytest
import torch
from conftest import TESTS
from forked import steadyeye as command

import steadyeye as se

DARK = "callable(path='py:light_toys:dark', classes='classes.json')"
RUN = ("run", "--workers", "1", "--quiet", "--no-cache", "--out", "run")
CLIP = "frames(path='clip', anchors=6, k=2, labels='labels.csv')"
SQUARES = "coco(annotations='squares/boxes.json', images='squares/images')"
DETECTOR = "callable_detector(path='py:explain_toys:detector', classes='squares/classes.json')"
NET = "torch(path='net.pt', classes='classes.json', recipe={'size': 16, 'resize': 16})"
PATH = os.pathsep.join([TESTS, f"{TESTS}/fixtures", os.environ.get("PYTHONPATH", "")])
ENV = {"PYTHONPATH": PATH}


@pytest.fixture
def folder(tmp_path):
    light_toys.write_clip(tmp_path)
    explain_toys.write(tmp_path / "squares", images=2)
    (tmp_path / "classes.json").write_text('["dark", "light"]')
    return tmp_path


def done(folder, *words):
    result = command(*words, cwd=folder, env=ENV)
    assert result.returncode == 0, result.stderr
    return words


def read_refusal(folder, *words):
    """What the same command says now, without its first words and the cure."""
    again = command(*words, cwd=folder, env=ENV)
    assert again.returncode == 2, again.stderr
    (line,) = again.stderr.splitlines()
    assert line.endswith("; choose another --out")
    return line.removeprefix("steadyeye: ").removesuffix("; choose another --out")


@pytest.mark.slow
def test_another_word_of_the_command_is_named(folder):
    words = done(folder, *RUN, "--model", DARK, "--data", CLIP)
    other = [*words[:-1], CLIP.replace("k=2", "k=3")]
    assert (
        read_refusal(folder, *other)
        == "'run' holds another job: its k of frames in data is 2, not 3"
    )
    line = read_refusal(folder, *words, "--batch", "3")
    assert line.endswith("holds predictions with another batch: batch is 16, not 3")
    line = read_refusal(folder, *words, "--on-error", "skip")
    assert line == "'run' holds another job: its on_error is 'stop', not 'skip'"


@pytest.mark.slow
def test_another_label_is_named_with_its_sample(folder):
    words = done(folder, *RUN, "--model", DARK, "--data", CLIP)
    ids = list(se.open_run(folder / "run").predictions.ids)
    first = next(id_ for id_ in ids if int(id_.rpartition("/")[2]) >= 6)
    (folder / "labels.csv").write_text("video,first,last,labels\nclip,0,5,dark\nclip,6,,light\n")
    assert read_refusal(folder, *words) == (
        "'run/cells/dark@clip' holds predictions of other samples: the truth of sample "
        f"{ids.index(first) + 1}, '{first}', is 'dark', not 'light'"
    )


@pytest.mark.slow
def test_another_order_of_the_classes_is_named(folder):
    words = done(folder, *RUN, "--model", DARK, "--data", CLIP)
    (folder / "classes.json").write_text('["light", "dark"]')
    assert read_refusal(folder, *words) == (
        "'run/cells/dark@clip' holds predictions with another model: item 1 of classes of model "
        "is 'dark', not 'light'"
    )


@pytest.mark.slow
def test_another_box_and_another_class_are_named(folder):
    words = done(folder, *RUN, "--model", DETECTOR, "--data", SQUARES)
    path = folder / "squares" / "boxes.json"
    before = path.read_text()
    content = json.loads(before)
    content["annotations"][0]["bbox"][2] += 3
    path.write_text(json.dumps(content))
    x, y, width, height = json.loads(before)["annotations"][0]["bbox"]
    corners = [f"{x:g} {y:g} {x + wide:g} {y + height:g}" for wide in (width, width + 3)]
    cell = "'run/cells/detector@boxes' holds predictions of other samples"
    of = "the boxes of sample 1, '0',"
    assert (
        read_refusal(folder, *words)
        == f"{cell}: item 1 of {of} is '{corners[0]}', not '{corners[1]}'"
    )
    content = json.loads(before)
    content["annotations"].pop()
    path.write_text(json.dumps(content))
    assert read_refusal(folder, *words).startswith(cell)
    path.write_text(before)
    done(folder, *words)


@pytest.mark.slow
def test_other_weights_are_named(folder):
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, 2))
    torch.save(net, folder / "net.pt")
    spec = NET.replace(")", ", allow_pickle=True)")
    words = done(folder, *RUN, "--model", spec, "--data", CLIP)
    with torch.no_grad():
        net[1].bias += 1
    torch.save(net, folder / "net.pt")
    assert read_refusal(folder, *words).endswith(
        "holds predictions with another model: model file, weights, classes or code changed"
    )


@pytest.mark.slow
def test_a_note_that_changed_does_not_refuse_the_run(folder):
    """What lies beside the data is noted, and decides no prediction."""
    for name, clip in (("dark", "000.png"), ("light", "011.png")):
        (folder / "pictures" / name).mkdir(parents=True)
        for i in range(20):
            shutil.copy(folder / "clip" / clip, folder / "pictures" / name / f"{i}.png")
    words = done(folder, *RUN, "--model", DARK, "--data", "image_folder(root='pictures')")
    (cell,) = (folder / "run" / "cells").iterdir()
    before = {file.name: file.read_bytes() for file in cell.iterdir()}
    (folder / "pictures" / "about.txt").write_text("not a picture")
    done(folder, *words)
    for engine in ("local", "local(processes=1)"):
        for file in ("00001.arrow", "00001.seal", "seal.json"):
            (cell / file).unlink()
        done(folder, *words, "--engine", engine)
        assert {file.name: file.read_bytes() for file in cell.iterdir()} == before
