"""Images that changed after a run: resume, report, compare, gate and measure say which."""

import json
import os
import shutil
import tracemalloc
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from forked import steadyeye
from tiny_sources import COUNT, KINDS, film, of_frames, of_image_folder, parquet, picture, tar

import steadyeye as se
from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.storage import contents
from steadyeye.core.storage.text_columns import encode_texts
from steadyeye.core.types import Classes, Sample
from steadyeye.predictions.read import cells, read
from steadyeye.report.build import document
from steadyeye.report.compare import group_shared
from steadyeye.report.render.formats import render_markdown


def bright(images):
    """Class 1 for a bright picture, class 0 for a dark one."""
    means = np.array([image.mean() for image in images])
    return np.stack([255 - means, means], axis=1).astype(np.float32)


def other(images):
    return bright(images) ** 2


def thirteen(images):
    return np.pad(bright(images), ((0, 0), (0, 11)))


WIDE = {"mot": thirteen, "mot_tracks": thirteen}
"""The model of sources whose classes are more than two."""


AGAIN = {".avi": film, ".tar": tar, ".parquet": parquet}
"""What writes a file that holds many pictures, other ones of the same size."""


def overwrite(file):
    """Other pixels in as many bytes, and the time of change put back as it was."""
    before = file.stat()
    if file.suffix in AGAIN:
        AGAIN[file.suffix](file, 7)
    else:
        file.write_bytes(picture(99))
    assert file.stat().st_size == before.st_size
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture(autouse=True)
def _own_index(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "index"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_overwritten_images_are_named_by_resume_and_report(kind, tmp_path):
    model = WIDE.get(kind, bright)
    spec, victim = KINDS[kind](tmp_path / "data")
    run = se.evaluate(model, spec, out=tmp_path / "run")
    ids = run.predictions.ids
    assert not any("since" in note for note in run.predictions.notes)
    again = se.evaluate(model, spec, out=tmp_path / "run")
    assert again.predictions.ids.tolist() == ids.tolist()
    overwrite(victim)
    with pytest.raises(UsageError) as error:
        se.evaluate(model, spec, out=tmp_path / "run")
    message = str(error.value)
    assert "\n" not in message
    assert "was made from other images" in message
    assert "1 differ, first" in message
    assert victim.name in message
    assert "choose another --out" in message
    notes = se.open_run(tmp_path / "run").predictions.notes
    assert any("changed since" in note and victim.name in note for note in notes)
    page = document([tmp_path / "run"])
    assert any("changed since" in n for entry in page.evaluated for n in entry.predictions.notes)
    assert "changed since" in render_markdown(page)
    se.evaluate(WIDE.get(kind, other), spec, out=tmp_path / "second")
    with pytest.raises(UsageError, match=r"in common.*1 of \d+ files? differ, first"):
        group_shared([tmp_path / "run", tmp_path / "second"])


def test_every_shipped_source_names_its_files():
    lacking = []
    for name in plugins.names("sources"):
        source_class = plugins.load("sources", name).__annotations__["return"]
        if not hasattr(source_class, "files"):
            lacking.append(name)
    assert not lacking


@pytest.fixture
def photos(tmp_path):
    spec, victim = of_image_folder(tmp_path / "data")
    run = se.evaluate(bright, spec, out=tmp_path / "run")
    return spec, victim, run


def test_ids_that_occur_twice_in_what_was_sealed_are_refused(photos, monkeypatch):
    """Whether the hashes of texts tell them apart or not."""
    ((cell,),) = cells(photos[2].folder)
    with pytest.raises(UsageError, match=r"ids? more than once in .*, first '"):
        read(cell, cell)
    monkeypatch.setattr("steadyeye.predictions.read.hash", lambda _: 1, raising=False)
    assert len(set(read(cell).ids.tolist())) == len(read(cell)) > 1


def test_a_copy_with_other_times_is_the_same_data(photos, tmp_path):
    spec, victim, run = photos
    shutil.copy(victim, tmp_path / "copy")
    victim.unlink()
    shutil.copy(tmp_path / "copy", victim)
    os.utime(victim, (1, 1))
    se.evaluate(bright, spec, out=tmp_path / "run")
    assert not any("since" in note for note in se.open_run(run.folder).predictions.notes)
    far = tmp_path / "elsewhere" / "data"
    shutil.copytree(tmp_path / "data", far)
    se.evaluate(other, spec.replace(str(tmp_path / "data"), str(far)), out=tmp_path / "far")
    assert len(group_shared([run.folder, tmp_path / "far"])) == 1


def test_an_unchanged_file_is_not_read_again(photos, tmp_path, monkeypatch):
    spec, victim, _ = photos
    monkeypatch.setattr(contents, "SETTLED", 0.0)
    read = []
    name = contents.hash_file
    monkeypatch.setattr(contents, "hash_file", lambda path: read.append(path.name) or name(path))
    se.evaluate(bright, spec, out=tmp_path / "run")
    assert len(read) == COUNT, "they were too young when they were read first"
    read.clear()
    se.evaluate(bright, spec, out=tmp_path / "run")
    assert not read
    os.utime(victim)
    se.evaluate(bright, spec, out=tmp_path / "run")
    assert read == [victim.name]


def test_a_file_that_is_overwritten_in_the_same_instant_is_read_again(photos, tmp_path):
    spec, victim, _ = photos
    # nothing that the disk says can tell; the file was too young to be trusted
    victim.write_bytes(picture(98))
    with pytest.raises(UsageError, match="1 differ"):
        se.evaluate(bright, spec, out=tmp_path / "run")


def test_images_that_are_gone_or_new_are_named(photos, tmp_path):
    spec, victim, run = photos
    (victim.parent / "zzz.bmp").write_bytes(picture(5))
    with pytest.raises(UsageError, match=r"of 8 files 1 are new, first '.*zzz\.bmp'"):
        se.evaluate(bright, spec, out=tmp_path / "run")
    (victim.parent / "zzz.bmp").unlink()
    victim.unlink()
    with pytest.raises(UsageError, match=r"of 8 files 1 are gone, first '.*000005\.bmp'"):
        se.evaluate(bright, spec, out=tmp_path / "run")
    before = document([run.folder]).evaluated[0].results["accuracy"].value
    shutil.rmtree(tmp_path / "data")
    page = document([run.folder]).evaluated[0]
    assert page.results["accuracy"].value == before, "a report needs no images"
    assert (
        "data: its images are not here, so changes in them were not checked"
        in page.predictions.notes
    )


@pytest.mark.slow
def test_gate_and_compare_say_what_changed_and_measure_refuses(tmp_path):
    spec, victim = of_frames(tmp_path / "data")
    run = se.evaluate(bright, spec, out=tmp_path / "run")
    se.evaluate(other, spec, out=tmp_path / "second")
    overwrite(victim)
    done = steadyeye("gate", str(run.folder), "--require", "flip_rate <= 1")
    assert f"changed since the run: of 8 files 1 differ, first '{victim}'" in done.stdout
    assert "flip_rate" in done.stdout
    done = steadyeye("compare", str(run.folder), str(tmp_path / "second"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "changed since" in done.stdout
    with pytest.raises(UsageError, match="was made from other images"):
        run.measure()
    third = se.evaluate(bright, spec, out=tmp_path / "third")
    done = steadyeye(
        *("gate", str(third.folder), "--against", str(run.folder)),
        *("--metrics", "flip_rate", "--max-drop", "0.5"),
    )
    assert done.returncode == 2
    assert "no base for" in done.stderr
    assert "images files" in done.stderr


@dataclass(frozen=True)
class GreySource:
    """A source of the user's own: pictures in memory, which no file and no key names."""

    values: tuple[int, ...]
    keyed: bool = False
    name: str = "listed"
    classes: Classes = field(default=Classes(("a", "b")))
    columns: tuple[str, ...] = ("truth",)
    fingerprint: str = "the user says it never changes"
    notes: tuple[str, ...] = ()

    @property
    def ids(self):
        return [str(i) for i in range(len(self.values))]

    @property
    def truths(self):
        return [(i % 2,) for i in range(len(self.values))]

    def missing(self):
        return []

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        value = self.values[i]
        key = (lambda: f"plain {value}") if self.keyed else None
        return Sample(str(i), lambda: np.full((9, 9, 3), value, np.uint8), (i % 2,), key=key)


@pytest.mark.parametrize("keyed", [False, True])
def test_pictures_of_an_object_are_told_by_their_pixels_or_keys(keyed, tmp_path):
    se.evaluate(bright, GreySource((10, 200, 30), keyed), out=tmp_path / "run")
    se.evaluate(bright, GreySource((10, 200, 30), keyed), out=tmp_path / "run")
    with pytest.raises(UsageError, match=r"of 3 samples 1 differ, first '1'"):
        se.evaluate(bright, GreySource((10, 201, 30), keyed), out=tmp_path / "run")


def test_a_sweep_is_told_by_the_images_it_degrades(tmp_path):
    spec, victim = of_image_folder(tmp_path / "data")
    out = tmp_path / "run"
    how = {"operators": "fade_black", "levels": "0:2"}
    se.evaluate(bright, spec, out=out, **how)
    overwrite(victim)
    with pytest.raises(UsageError, match="1 differ"):
        se.evaluate(bright, spec, out=out, **how)


@pytest.mark.slow
def test_saved_predictions_compare_with_a_run_of_the_same_data(photos, tmp_path):
    spec, _, run = photos
    answers = {str(id_): int(i > 3) for i, id_ in enumerate(run.predictions.ids)}
    (tmp_path / "said.json").write_text(json.dumps(answers))
    out = str(tmp_path / "scored")
    done = steadyeye("score", str(tmp_path / "said.json"), "--data", spec, "--out", out)
    assert done.returncode == 0, done.stderr
    assert len(group_shared([run.folder, tmp_path / "scored"])) == 1


@pytest.mark.parametrize("seed", range(20))
def test_changes_of_files_in_their_order_are_those_of_files_in_any(seed):
    rng = np.random.default_rng(seed)
    paths = [f"/{i}" for i in range(12)]
    old, new = (rng.choice(["a", "b", contents.GONE], 12).tolist() for _ in range(2))
    before = contents.ContentHashes("files", paths, [""] * 12, old)
    change = contents.compare_contents(before, replace(before, names=new))
    mixed = rng.permutation(12)
    others = replace(before, paths=[paths[i] for i in mixed], names=[new[i] for i in mixed])
    by_path = contents.compare_contents(before, others)
    assert (change.altered, change.gone) == (by_path.altered, by_path.gone)
    assert not change.new
    assert not by_path.new
    pairs = list(zip(paths, old, new, strict=True))
    assert change.gone == [path for path, _, now in pairs if now == contents.GONE]
    assert change.altered == [path for path, was, now in pairs if contents.GONE != now != was]


def test_a_record_of_many_samples_takes_few_bytes_to_read(tmp_path):
    """As objects of Python each sample took 900."""
    several = 20_000
    record = contents.ContentHashes(
        "samples",
        encode_texts(f"{i:08d}" for i in range(several)),
        [""] * several,
        encode_texts(f"key {i:08d}" for i in range(several)),
    )
    contents.write_contents(tmp_path / "record", record)
    tracemalloc.start()
    read = contents.read_contents(tmp_path / "record")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert read.mark == record.mark
    assert most / several < 150


def test_a_damaged_record_of_file_contents_is_not_used(photos, tmp_path):
    spec, victim, run = photos
    (contents_file,) = (run.folder / "data").iterdir()
    whole = contents_file.read_bytes()
    for place in range(0, len(whole), 97):
        contents_file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        notes = se.open_run(run.folder).predictions.notes
        assert any("cannot check whether its images changed" in note for note in notes)
    se.evaluate(bright, spec, out=tmp_path / "run")
    read = contents.read_contents(contents_file)
    assert read.kind == "files"
    assert victim.resolve() in {Path(path).resolve() for path in read.paths}
    assert list(read.paths) == read.paths[:] == [read.paths[i] for i in range(len(read))]
    contents_file.unlink()
    overwrite(victim)
    with pytest.raises(UsageError, match="of images that may have changed"):
        se.evaluate(bright, spec, out=tmp_path / "run")
