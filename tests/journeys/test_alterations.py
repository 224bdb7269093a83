"""Single altered bytes in all files that are read again: the same numbers, or one line."""

import json
import shutil
from dataclasses import dataclass, fields, is_dataclass

import cv2
import numpy as np
import pytest
from review_boxes import BOX, FINE, Boxes, candidates, write
from review_toys import CLASSES, NO, YES, Review, draw, source
from toy_classifiers import NET, build_examples

import steadyeye as se
from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.data.annotations import review_set
from steadyeye.models.finetuned import checkpoint_format
from steadyeye.report.gate import gate, requirements
from steadyeye.review.interchange.coco import export_coco
from steadyeye.review.interchange.frames import export_pmsets, export_set
from steadyeye.review.sampling.sampling import Sampling, sample_boxes
from steadyeye.runner.collect import record, results, tables
from steadyeye.training.classification import classification

LETTERS = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFXYZ"
STATES = ("changed since", "whether its images changed", "were not checked")
"""What notes may say beside those of the untouched folder: that a record of the files is lost."""


def bright(images):
    means = np.array([image.mean() for image in images])
    return np.stack([255 - means, means], axis=1).astype(np.float32)


def spotting(images):
    """A box in each picture, its score by how bright it is."""
    return [([[1, 1, 9, 9], [2, 2, 12, 12]], [i.mean() / 300, 0.4], [0, 1]) for i in images]


def frozen(value):
    """What can be compared of a value: arrays by their bytes, records by their fields."""
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if is_dataclass(value):
        return tuple(frozen(getattr(value, attribute.name)) for attribute in fields(value))
    if isinstance(value, dict):
        return tuple((key, frozen(entry)) for key, entry in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def of_run(folder):
    """All that numbers of a run are made of, the verdict of a gate, and its names and notes."""
    run_tables = [table for _, table in tables([folder])]
    about = record(folder)
    paired = "offset" in run_tables[0].columns
    verdicts = gate(run_tables, requirements(["flip_rate <= 1"])) if paired else ()
    notes = [(table.model, table.data, frozen(table.__dict__["notes"])) for table in run_tables]
    parts = [
        [frozen(getattr(t, f.name)) for f in fields(t) if f.name not in ("notes", "candidates")]
        for t in run_tables
    ]
    return notes, parts, [v.sentence for v in verdicts], frozen(about["job"]), about["cells"]


def of_model(folder):
    """What a trained model answers to a picture, and all that it says of itself."""
    model = plugins.build("models", parse(f"torch(path='{folder}', runtime='torch')"))
    images = [np.full((64, 64, 3), value, np.uint8) for value in (10, 200)]
    return frozen(np.asarray(model(images))), frozen(model.classes), repr(dict(model.recipe))


def of_source(spec):
    """All that a set holds: names, labels, boxes and pixels."""
    built = plugins.build("sources", parse(spec))
    samples = [built[row] for row in range(len(built))]
    pixels = [frozen(sample.image()) for sample in samples]
    labels = [(s.id, s.truth, s.group, frozen(dict(s.tags)), frozen(s.boxes)) for s in samples]
    return built.name, frozen(built.classes), built.columns, built.notes, labels, pixels


@dataclass(frozen=True)
class Part:
    """A folder and what reads it; `share`: of a thousand alterations how many fall to it."""

    folder: object
    read: object
    share: int


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    root = tmp_path_factory.mktemp("altered")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(root / "cache"))
        return {
            "run": Part(made_run(root / "a"), of_run, 330),
            "detections": Part(made_detections(root / "b"), of_run, 170),
            "trained": Part(made_model(root / "c"), of_model, 150),
            "set": Part(made_set(root / "d"), lambda f: of_source(f"reviewed(root='{f}')"), 150),
            "pmsets": Part(
                made_set(root / "e", export_pmsets),
                lambda f: of_source(f"imagenet_vid_robust(root='{f}')"),
                100,
            ),
            "boxes": Part(made_boxes(root / "f"), lambda f: of_source(f"nao(root='{f}')"), 100),
        }


def made_run(root):
    (root / "clip").mkdir(parents=True)
    for i in range(9):
        picture = np.full((16, 16, 3), 25 * i, np.uint8)
        cv2.imwrite(str(root / "clip" / f"{i:03d}.png"), picture)
    (root / "labels.csv").write_text("video,labels\nclip,dark\nother,light\n")
    spec = f"frames(path='{root / 'clip'}', anchors=4, k=2, labels='{root / 'labels.csv'}')"
    run = se.evaluate(bright, spec, out=root / "run")
    run.measure()
    return run.folder


def made_detections(root):
    root.mkdir()
    for i in range(6):
        cv2.imwrite(str(root / f"{i}.png"), np.full((20, 20, 3), 30 * i, np.uint8))
    content = {
        "images": [{"id": i, "file_name": f"{i}.png"} for i in range(6)],
        "categories": [{"id": 1, "name": "person"}, {"id": 2, "name": "bicycle"}],
        "annotations": [
            {"id": i, "image_id": i, "category_id": 1 + i % 2, "bbox": [1, 1, 8, 8]}
            for i in range(6)
        ],
    }
    (root / "truth.json").write_text(json.dumps(content))
    data = f"coco(annotations='{root / 'truth.json'}', images='{root}')"
    model = "callable_detector(path='test_alterations:spotting')"
    return se.evaluate(model, data, out=root / "run").folder


def made_model(root):
    root.mkdir()
    (root / "ten.txt").write_text("\n".join(f"class {i}" for i in range(10)))
    spec = NET.format(root / "ten.txt")
    network = plugins.build("models", parse(spec))
    task = classification(network, spec, build_examples([[0], [1], [2]]))
    checkpoint_format.write(root / "model", task.record(), task.module.state_dict())
    return root / "model"


def made_set(root, export=export_set):
    draw([source()], root / "set", Sampling("set", {}, CLASSES))
    folder = review_set.read(root / "set")
    review = Review(folder)
    review.everything("anchors", lambda payload: {"quality": "good", "labels": ["dog"]})
    review.everything("pairs", lambda payload: NO if payload["offset"] == 2 else YES)
    review.everything("joint", lambda payload: NO)
    with review.db.reading() as c:
        export(c, folder, review.plan, root / "out")
    return root / "out"


def made_boxes(root):
    root.mkdir()
    sample_boxes(*write(root, candidates()))
    folder = review_set.read(root / "set")
    review = Boxes(folder, 5, stages={"classification": 5, "boxes": 1})
    for number in range(5):
        review.everything(
            "classification",
            lambda payload: {**FINE, "blurry": payload["choices"] == ["dog"]},
            number,
        )
    review.everything("boxes", lambda payload: {"boxes": [BOX]}, 0)
    review.everything("box_check", lambda payload: {"boxes": payload["boxes"]}, 1)
    with review.db.reading() as c:
        export_coco(c, folder, review.plan, root / "out")
    return root / "out"


def altered(content, rng):
    """A file with one byte of it replaced: by one with a bit flipped, or by a digit or letter."""
    place = int(rng.integers(len(content)))
    before = content[place]
    choices = [before ^ (1 << bit) for bit in range(8)]
    choices += [letter for letter in LETTERS if letter != before]
    return content[:place] + bytes([int(rng.choice(choices))]) + content[place + 1 :]


def silent(part, count, seed):
    """How many alterations a reader refuses in one line, and those that it takes for something.

    Every file of the folder has its turn, one after the other.
    """
    rng, wrong, refused = np.random.default_rng(seed), [], 0
    files = sorted(path for path in part.folder.rglob("*") if path.is_file())
    files = [path for path in files if path.stat().st_size]
    before = part.read(part.folder)
    for turn in range(count):
        path = files[turn % len(files)]
        whole = path.read_bytes()
        path.write_bytes(altered(whole, rng))
        try:
            content = part.read(part.folder)
        except UsageError as error:
            refused += 1
            if "\n" in str(error):
                wrong.append((path.name, str(error)))
        except Exception as error:
            wrong.append((path.name, repr(error)))
        else:
            if without_states(content) != without_states(before):
                wrong.append((path.name, "another answer without a word"))
        finally:
            path.write_bytes(whole)
    assert part.read(part.folder) is not None
    return refused, wrong


def without_states(content):
    """What was read, without the notes that say that a record of the files is lost."""
    if not isinstance(content, tuple) or not isinstance(content[0], list):
        return content
    entries = [
        (model, data, tuple(note for note in notes if not any(state in note for state in STATES)))
        for model, data, notes in content[0]
    ]
    return (entries, *content[1:])


NAMES = ("run", "detections", "trained", "set", "pmsets", "boxes")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_altered_byte_changes_a_result_without_an_error(parts, name):
    part = parts[name]
    refused, wrong = silent(part, part.share, seed=1)
    assert not wrong, f"{len(wrong)} of {part.share}, first {wrong[0]}"
    assert refused > part.share // 3


def test_the_shares_make_a_thousand(parts):
    assert sum(part.share for part in parts.values()) == 1000


def test_files_of_an_earlier_version_are_read_with_a_note(parts, tmp_path):
    shutil.copytree(parts["run"].folder, tmp_path / "run")
    shutil.copytree(parts["trained"].folder, tmp_path / "model")
    for path in (*(tmp_path / "run").rglob("*.json"), tmp_path / "model" / "model.json"):
        content = json.loads(path.read_bytes())
        del content["format"], content["checksum"]
        path.write_text(json.dumps(content))
    (table,) = (table for _, table in tables([tmp_path / "run"]))
    assert any("written by an earlier version without a checksum" in note for note in table.notes)
    assert results(table)
    assert "has no checksum" in of_model(tmp_path / "model")[2]
