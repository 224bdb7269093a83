"""Bursts and near duplicates as pm-sets, with times as Pillow writes them."""

import unicodedata

import numpy as np
import pytest
from PIL import Image

import steadyeye as se
from steadyeye.core.errors import UsageError
from steadyeye.data.images.image_header import read_time
from steadyeye.data.sources.photo_bursts import photo_bursts
from steadyeye.testing import check_source

TIMES = {  # seconds after noon, part of a second
    "cat/a.jpg": (0, "0"),
    "cat/b.jpg": (0, "30"),
    "cat/c.jpg": (2, None),
    "cat/d.jpg": (30, None),
    "dog/e.jpg": (31, None),
    "dog/f.jpg": (32, "5"),
    "dog/g.jpg": (None, None),
}


@pytest.fixture
def photos(tmp_path):
    rng = np.random.default_rng(0)
    scene = {name: rng.integers(0, 256, (40, 60, 3), np.uint8) for name in ("cat", "dog")}
    for name, (second, part) in TIMES.items():
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = scene[name.split("/")[0]].astype(int) + rng.integers(-2, 3, (40, 60, 3))
        if name == "cat/d.jpg":
            pixels = rng.integers(0, 256, (40, 60, 3))
        image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
        exif = Image.Exif()
        if second is not None:
            more = exif.get_ifd(0x8769)
            more[0x9003] = f"2026:01:01 12:00:{second:02d}"
            if part is not None:
                more[0x9291] = part
        image.save(path, exif=exif, quality=95)
    return tmp_path / "photos"


def sets(source):
    groups = {}
    for member in source.members:
        groups.setdefault(member.group, []).append((member.id.removeprefix(f"{member.group}/"),
                                                    member.offset))  # fmt: skip
    return groups


def test_the_time_of_a_photo_is_read_from_exif(photos):
    assert read_time(photos / "cat/b.jpg") - read_time(photos / "cat/a.jpg") == pytest.approx(0.3)
    assert read_time(photos / "dog/g.jpg") is None
    (photos / "cat/a.jpg").write_bytes((photos / "cat/a.jpg").read_bytes()[:60])
    assert read_time(photos / "cat/a.jpg") is None


def test_bursts_by_time_do_not_cross_folders(photos):
    source = photo_bursts(str(photos), by="time", gap=2)
    cat, dog = ["cat/a.jpg", "cat/b.jpg", "cat/c.jpg"], ["dog/e.jpg", "dog/f.jpg"]
    assert sets(source) == {
        "cat/a.jpg": list(zip(cat, (-1, 0, 1), strict=True)),
        "dog/e.jpg": list(zip(dog, (-1, 0), strict=True)),
    }
    text = " ".join(source.notes)
    assert "1 photo without a time in its EXIF" in text
    assert "2 photos left out: in no set of two or more" in text
    assert len(sets(photo_bursts(str(photos), by="time", gap=0.5))) == 1


def test_near_duplicates_and_folders_and_tables(photos, tmp_path):
    near = sets(photo_bursts(str(photos), by="similarity"))
    assert [name for name, _ in near["cat/a.jpg"]] == ["cat/a.jpg", "cat/b.jpg", "cat/c.jpg"]
    assert len(near["dog/e.jpg"]) == 3
    assert {name: len(ids) for name, ids in sets(photo_bursts(str(photos))).items()} == {
        "cat": 4,
        "dog": 3,
    }
    (tmp_path / "sets.csv").write_text("file,set\ncat/c.jpg,x\ncat/a.jpg,x\ndog/e.jpg,y\n")
    by_table = photo_bursts(str(photos), by="column", table=str(tmp_path / "sets.csv"))
    assert sets(by_table) == {"x": [("cat/c.jpg", -1), ("cat/a.jpg", 0)]}


@pytest.mark.parametrize("by", ["folder", "time"])
def test_numbers_in_names_are_in_their_order(by, tmp_path):
    for number in (9, 10, 8):  # of one second, as a burst is without fractions of seconds
        picture = Image.new("RGB", (8, 8))
        exif = picture.getexif()
        exif[0x0132] = "2024:05:01 12:00:00"
        picture.save(tmp_path / f"IMG_{number}.jpg", exif=exif)
    ((_, members),) = sets(photo_bursts(str(tmp_path), by=by)).items()
    assert members == [("IMG_8.jpg", -1), ("IMG_9.jpg", 0), ("IMG_10.jpg", 1)]


@pytest.mark.parametrize(("on_disk", "in_file"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_labels_and_sets_in_tables(on_disk, in_file, photos):
    folder = photos / unicodedata.normalize(on_disk, "Äpfel")
    (photos / "cat").rename(folder)
    name = unicodedata.normalize(in_file, "Äpfel")
    rows = [("a", "cat"), ("a", "pet"), ("b", "cat | pet"), ("c", "")]
    table = photos / "table.csv"
    table.write_text("file,label\n" + "".join(f"{name}/{a}.jpg,{b}\n" for a, b in rows))
    source = photo_bursts(str(folder.parent), labels=str(table))
    assert source.classes.names == ("cat", "pet")
    truths = {sample.id.rpartition("/")[2]: sample.truth for sample in source}
    assert [truths[f"{photo}.jpg"] for photo in "abcd"] == [(0, 1), (0, 1), (), ()]
    table.write_text(f"file,set\n{name}/a.jpg,x\n{name}/b.jpg,x\n")
    by_table = sets(photo_bursts(str(photos), by="column", table=str(table)))
    assert [offset for _, offset in by_table["x"]] == [-1, 0]
    table.write_text(f"file,label\n{name}/a.jpg,\n")
    with pytest.raises(UsageError, match=r"table of labels '.*' has no label; write one"):
        photo_bursts(str(photos), labels=str(table))


def test_numbers_are_those_of_counting_by_hand(photos):
    """A set is steady if every photo is right: of two bursts one, as `f` is made wrong."""

    def tell(images):
        cat = images[..., 0].mean(axis=(1, 2)) > 0
        bad = np.array([np.array_equal(image, wrong) for image in images])
        return np.stack([cat & ~bad, bad], axis=1).astype(float)

    spec = f"photo_bursts(path='{photos}', by='time', labels='folder')"
    source = photo_bursts(str(photos), by="time", labels="folder")
    wrong = source[2].image()  # cat/c.jpg, a neighbour
    run = se.evaluate(tell, spec, classes=["cat", "dog"])
    assert (run.accuracy().value, run.pm_k(1).value, run.pm_k(1).n) == (0.5, 0.0, 2)
    assert check_source(source)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"by": "colour"}, "did you mean 'column'|no way to make sets of photos named 'colour'"),
        ({"by": "time", "gap": 0}, "gap=0: give the longest time"),
        ({"by": "column"}, "table='…' goes with by='column'"),
        ({"by": "time", "gap": 0.001}, "no two of the 7 photos"),
    ],
)
def test_invalid_arguments_are_refused_in_one_line(more, words, photos):
    with pytest.raises(UsageError, match=words) as error:
        photo_bursts(str(photos), **more)
    assert "\n" not in str(error.value)
