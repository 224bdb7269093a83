"""Files from others reach nothing outside their folder, and run no code.

Each names a picture outside, whose bytes would be found in the output, or code that leaves a
marker. If the user allows it both are found, so that their absence is meaningful.
"""

import json
import pickle
import shutil
import sqlite3
import sys

import av
import cv2
import encoded
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forked import steadyeye
from review_toys import CLASSES, GOOD, YES, Review, draw, source

import steadyeye as se
from steadyeye import allow_code
from steadyeye.core import code_permission, plugins
from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.spec import Spec, parse
from steadyeye.core.storage.confinement import VARIABLE
from steadyeye.core.storage.files import encode_record, write_file
from steadyeye.data.annotations import review_set
from steadyeye.review.sampling.sampling import Sampling
from steadyeye.runner.collect import collect

SECRET = 37
"""The grey value of the picture outside: nothing else is of it."""


@pytest.fixture
def secret(tmp_path):
    """A folder outside with a JPEG file that sets and exports would take over byte for byte."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    path = folder / "frame-11.jpg"
    cv2.imwrite(str(path), np.full((16, 16, 3), SECRET, np.uint8))
    for other in ("frame-10.jpg", "0b.jpg"):
        shutil.copy(path, folder / other)
    return path


def find(folder, content, but=None):
    """The files below a folder, links not followed, that hold these bytes; `but`: not there."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    files = [path for path in files if path.parent != but]
    return [path for path in files if content in path.read_bytes()]


def guess(images):
    return np.tile(np.linspace(0, 1, 24, dtype=np.float32), (len(images), 1))


def write_release(base, key):
    """A release of YTBB with one set, `key` in its reviews and its anchors."""
    (base / "metadata").mkdir(parents=True)
    (base / "frames").mkdir()
    reviews = {"labels": ["good", "unsure", "bad"], "annotations": [{"key": f"{key}/frame-11.jpg"}]}
    reviews["annotations"][0]["labels"] = [0]
    (base / "metadata" / "anchor_labels.json").write_text(json.dumps(reviews))
    ytid, _, time = key.rpartition("_")
    lines = ["ytid,time_ms,label", f"{ytid},{time},7"]
    file = base / "metadata" / "ytbb_robustness_test_anchors_full.csv"
    file.write_text("\n".join(lines))
    return f"ytbb_robust(root='{base}', k=1)"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["above", "linked folder", "linked frame"])
def test_sets_of_ytbb_take_no_frame_from_outside(kind, tmp_path, secret, monkeypatch):
    key = "../../secrets_100" if kind == "above" else "aa_100"
    secret.parent.rename(tmp_path / "secrets_100")
    outside = tmp_path / "secrets_100"
    content = (outside / secret.name).read_bytes()
    spec = write_release(tmp_path / "release", key)
    place = tmp_path / "release" / "frames" / "aa_100"
    if kind == "linked folder":
        place.symlink_to(outside)
    elif kind == "linked frame":
        place.mkdir()
        for name in ("frame-10.jpg", "frame-11.jpg"):
            (place / name).symlink_to(outside / name)
    sampled = ("sample", "--data", spec, "--quiet", "--out", "set")
    refused = steadyeye(*sampled, cwd=tmp_path)
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1
    assert not find(tmp_path / "set", content)
    if kind != "above":
        allowed = steadyeye(*sampled, cwd=tmp_path, env={VARIABLE: str(outside)})
        assert allowed.returncode == 0, allowed.stderr
        assert find(tmp_path / "set", content), "the attack does nothing even when it is allowed"


@pytest.fixture
def reviewed_set(tmp_path):
    """A set to review; SHA256SUMS is left out, as whoever changes the files would write it."""
    root = tmp_path / "set"
    draw([source()], root)
    (root / "SHA256SUMS").unlink()
    return root


def link_pictures(root, secret):
    for path in (root / "images").rglob("*.jpg"):
        path.unlink()
        path.symlink_to(secret)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["pmsets", "cvat", "set"])
def test_an_export_copies_no_picture_from_outside(form, tmp_path, secret):
    draw([source()], tmp_path / "set", Sampling("set", {}, CLASSES))
    review = Review(review_set.read(tmp_path / "set"))
    review.everything("anchors", lambda payload: GOOD)
    review.everything("pairs", lambda payload: YES)
    words = ("review-export", "set", *review.option, "--partial", "--format", form, "--out")
    done = steadyeye(*words, "before", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "before").rglob("*.[jJ]*[gG]"))
    link_pictures(tmp_path / "set", secret)
    # whoever changes the files would write their sums too
    (tmp_path / "set" / "SHA256SUMS").unlink()
    refused = steadyeye(*words, "out", cwd=tmp_path)
    assert refused.returncode == 2
    assert "outside of" in refused.stderr
    assert not find(tmp_path, secret.read_bytes(), but=secret.parent)
    allowed = steadyeye(*words, "other", cwd=tmp_path, env={VARIABLE: str(secret.parent)})
    assert allowed.returncode == 0, allowed.stderr
    assert find(tmp_path / "other", secret.read_bytes()), "the attack does nothing when allowed"


@pytest.mark.parametrize("name", ["linked", "../../secrets/frame-11.jpg", "ABSOLUTE"])
def test_a_reviewed_set_names_no_picture_outside(name, tmp_path, secret, reviewed_set, monkeypatch):
    if name == "linked":
        link_pictures(reviewed_set, secret)
    else:
        path = reviewed_set / "frames.parquet"
        table = pq.read_table(path)
        names = pa.array([str(secret) if name == "ABSOLUTE" else name] * len(table))
        column = table.column_names.index("image")
        pq.write_table(table.set_column(column, table.schema.field(column), names), path)

    def read():
        spec = Spec("reviewed", {"root": str(reviewed_set), "review": False})
        reviewed_source = plugins.build("sources", spec)
        return [reviewed_source[row].image() for row in range(len(reviewed_source))]

    with pytest.raises(UsageError) as raised:
        read()
    assert not isinstance(raised.value, SampleError)
    monkeypatch.setenv(VARIABLE, str(secret.parent))
    if name == "linked":
        assert all(abs(image.mean() - SECRET) < 1 for image in read())


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """A module that leaves a marker when it is imported; its name, and the marker."""
    folder, marker = tmp_path / "modules", tmp_path / "marker"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(code_permission, "_allowed_names", set())
    name = f"planted_{abs(hash(str(tmp_path)))}"
    (folder / f"{name}.py").write_text(
        f"open({str(marker)!r}, 'w').close()\n"
        "from steadyeye.metrics.accuracy import accuracy\n"
        "def metric(predictions):\n    return accuracy(predictions)\n"
    )
    yield name, marker
    sys.modules.pop(name, None)


def finished_run(tmp_path):
    for name, value in (("dark", 0), ("light", 200)):
        (tmp_path / "data" / name).mkdir(parents=True)
        image = np.full((8, 8, 3), value, np.uint8)
        cv2.imwrite(str(tmp_path / "data" / name / "0.png"), image)

    def brightness(images):
        means = images.reshape(len(images), -1).mean(axis=1) / 255
        return np.stack([1 - means, means], axis=1)

    se.evaluate(brightness, f"image_folder(root='{tmp_path / 'data'}')", out=tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["module", "file", "with py:"])
def test_the_metrics_that_a_run_records_run_no_code(kind, tmp_path, evil):
    name, marker = evil
    run = finished_run(tmp_path)
    home = {
        "module": name,
        "file": str(tmp_path / "modules" / f"{name}.py"),
        "with py:": f"py:{name}",
    }
    content = json.loads((run / "run.json").read_bytes())
    content["job"]["metrics"] = f"accuracy, {home[kind]}:metric()"
    rest = {key: value for key, value in content.items() if key not in ("format", "checksum")}
    write_file(run / "run.json", encode_record(rest))
    with pytest.raises(UsageError):
        collect([run], None)
    env = {"PYTHONPATH": f"{tmp_path / 'modules'}:{sys.path[1]}"}
    commands = (
        ("report", run, "--out", tmp_path / "a.html"),
        ("compare", run, run),
        ("gate", run, "--require", "accuracy>=1%"),
        ("measure", run, "--quiet"),
        ("view", tmp_path, "--html", tmp_path / "list.html"),
    )
    for words in commands:
        done = steadyeye(*map(str, words), cwd=tmp_path, env=env)
        assert "Traceback" not in done.stderr, words
        assert not marker.exists(), words
    assert not marker.exists()
    if kind != "with py:":
        allow_code(f"{home[kind]}:metric")
        collect([run], None)
        assert marker.exists(), "the attack does nothing even when it is allowed"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["../secrets/frame-11.jpg", "ABSOLUTE", "linked.jpg"])
def test_candidates_name_no_picture_outside(name, tmp_path, secret):
    images = tmp_path / "images"
    images.mkdir()
    (images / "linked.jpg").symlink_to(secret)
    content = {
        "images": [{"id": 1, "file_name": str(secret) if name == "ABSOLUTE" else name}],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 8, 8]}],
    }
    (tmp_path / "candidates.json").write_text(json.dumps(content))
    words = ("sample", "--boxes", "candidates.json", "--images", "images", "--quiet", "--out")
    refused = steadyeye(*words, "set", cwd=tmp_path)
    assert refused.returncode == 2
    assert "candidates.json' names " in refused.stderr
    assert not find(tmp_path / "set", secret.read_bytes())
    if name == "linked.jpg":
        allowed = steadyeye(*words, "other", cwd=tmp_path, env={VARIABLE: str(secret.parent)})
        assert allowed.returncode == 0, allowed.stderr
        assert find(tmp_path / "other", secret.read_bytes())


class Marker:
    """Leaves a marker when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.slow
def test_entries_of_a_cache_run_no_code(tmp_path):
    marker = tmp_path / "marker"
    (tmp_path / "a").mkdir()
    for number in range(3):
        cv2.imwrite(str(tmp_path / "a" / f"{number}.png"), np.full((8, 8, 3), number, np.uint8))
    spec = "every_frame(path='a', cuts='none', fps=5)"
    words = ("run", "--model", "efficientnet_lite0", "--data", spec, "--cache", "kept", "--quiet")
    whole = steadyeye(*words, "--out", "whole", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    planted = pickle.dumps(Marker(marker))
    (file,) = [path for path in (tmp_path / "kept").rglob("*") if path.suffix in (".sqlite", ".db")]
    with sqlite3.connect(file) as db:
        tables = [
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        changed = 0
        for table in tables:
            for column in db.execute(f"PRAGMA table_info({table})").fetchall():
                if column[2] == "BLOB" and not column[5]:
                    changed += db.execute(
                        f"UPDATE {table} SET {column[1]} = ?", (planted,)
                    ).rowcount
    assert changed
    again = steadyeye(*words, "--out", "again", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert not marker.exists()
    shards = [sorted((tmp_path / run / "cells").rglob("*.arrow")) for run in ("whole", "again")]
    assert [[path.read_bytes() for path in paths] for paths in shards[:1]] == [
        [path.read_bytes() for path in paths] for paths in shards[1:]
    ]
    pickle.loads(planted)
    assert marker.exists(), "the attack does nothing even when it is read"


@pytest.mark.parametrize("file", ["boxes", "labels"])
@pytest.mark.parametrize("name", ["../secrets/frame-11", "ABSOLUTE", "linked"])
def test_the_tables_of_open_images_name_no_picture_outside(
    file, name, tmp_path, secret, monkeypatch
):
    images = tmp_path / "images"
    (images / "deep").mkdir(parents=True)
    cv2.imwrite(str(images / "0a.jpg"), np.zeros((16, 16, 3), np.uint8))
    if name == "linked":
        # a folder that a listing enters is the user's own; a name goes nowhere by it
        (images / "way").symlink_to(secret.parent)
        name = "way/frame-11"
    id_ = str(secret.with_suffix("")) if name == "ABSOLUTE" else name
    ids = {"boxes": ["0a"], "labels": ["0a"]}
    ids[file].append(id_)
    boxes = ["ImageID,LabelName,XMin,XMax,YMin,YMax,IsGroupOf,Width,Height"]
    boxes += [f"{row},/m/01yrx,0.1,0.5,0.1,0.5,0,16,16" for row in ids["boxes"]]
    labels = ["ImageID,LabelName,Confidence", *(f"{row},/m/01yrx,1" for row in ids["labels"])]
    for table, lines in (("boxes", boxes), ("labels", labels)):
        (tmp_path / f"{table}.csv").write_text("\n".join(lines) + "\n")
    where = {table: f"'{tmp_path / table}.csv'" for table in ("boxes", "labels")}
    text = f"open_images(boxes={where['boxes']}, labels={where['labels']}, images='{images}')"
    means = []

    def look(pictures):
        means.extend(pictures.reshape(len(pictures), -1).mean(axis=1).tolist())
        return np.tile(np.linspace(0, 1, 601, dtype=np.float32), (len(pictures), 1))

    with pytest.raises(UsageError, match="outside of"):
        se.evaluate(look, text, out=tmp_path / "run")
    assert not any(abs(value - SECRET) < 2 for value in means)
    assert not find(tmp_path, secret.read_bytes(), but=secret.parent)
    monkeypatch.setenv(VARIABLE, str(secret.parent))
    source = plugins.build("sources", parse(text))
    row = list(source.ids).index(id_)
    assert abs(source[row].image().mean() - SECRET) < 1, "the attack does nothing when allowed"


PLAYLISTS = {
    "a.m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1.0,\n{outside}\n#EXT-X-ENDLIST\n",
    "b.mp4": "ffconcat version 1.0\nfile linked.ts\n",
}


@pytest.mark.parametrize("name", PLAYLISTS)
def test_a_video_that_lists_others_opens_none(name, tmp_path):
    outside, folder = tmp_path / "secret.ts", tmp_path / "videos"
    folder.mkdir()
    encoded.write(outside, "libx264", count=3)
    (folder / "linked.ts").symlink_to(outside)
    (folder / name).write_text(PLAYLISTS[name].format(outside=outside))
    with pytest.raises(UsageError, match="it is no video, a list of other files, or truncated"):
        plugins.build("sources", Spec("every_frame", {"path": str(folder / name)}))
    with av.open(str(folder / name)) as container:
        assert len([*container.decode(video=0)]) == 3, "the attack does nothing in FFmpeg itself"
