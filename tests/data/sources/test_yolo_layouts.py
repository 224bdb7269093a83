"""The layouts of YOLO's trainers, read in the same way."""

import cv2
import numpy as np
import pytest
from PIL import Image

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse

BOX, CORNERS = "1 .5 .5 .2 .4", [80, 30, 120, 70]  # of an image of 200 by 100 pixels
NAMES = "names: [cat, dog]\n"


@pytest.fixture
def yolo(tmp_path):
    """What makes the source of a data.yaml, of labels by image, and of other files by name."""

    def make(data, labels, files=None, at="data.yaml"):
        for image, text in labels.items():
            path = tmp_path / image
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                cv2.imwrite(str(path), np.zeros((100, 200, 3), np.uint8))
            if text is not None:
                write(image.replace("images/", "labels/").replace(".jpg", ".txt"), text)
        for name, text in {**(files or {}), at: data}.items():
            write(name, text)
        return plugins.build("sources", parse(f"yolo(data='{tmp_path / at}')"))

    def write(name, text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    return make


def corners(source):
    return {
        source[i].id: source[i].boxes.boxes.round(6).tolist()[0]
        for i in range(len(source))
        if len(source[i].boxes)
    }


@pytest.mark.parametrize(
    ("shape", "points"), [("[2, 2]", ".1 .1 .9 .9"), ("[4, 3]", ".1 .1 1 .2 .2 0 .3 .3 1 .4 .4 1")]
)
def test_key_points_behind_a_box_are_no_corners_of_a_polygon(yolo, shape, points):
    data = f"val: images\n{NAMES}kpt_shape: {shape}\n"
    source = yolo(data, {"images/a.jpg": f"{BOX} {points}"})
    assert corners(source) == {"a.jpg": CORNERS}


def test_a_split_may_list_folders_and_files_of_images(yolo):
    data = f"path: .\nval: [images/one, lists/val.txt]\n{NAMES}"
    labels = {
        "images/one/a.jpg": BOX,
        "images/two/a.jpg": "0 .5 .5 .1 .2",
        "images/two/left_out.jpg": BOX,
    }
    files = {"lists/val.txt": "../images/two/a.jpg\r\n\n./../images/one/a.jpg\n"}
    source = yolo(data, labels, files)
    assert corners(source) == {"images/one/a.jpg": CORNERS, "images/two/a.jpg": [90, 40, 110, 60]}
    assert source[1].truth == (0,)


def test_a_list_of_images_is_kept_in_its_folder(yolo):
    data = f"val: val.txt\n{NAMES}"
    with pytest.raises(UsageError, match="outside of"):
        yolo(data, {"images/a.jpg": BOX}, {"val.txt": "/etc/images/a.jpg\n"})
    with pytest.raises(UsageError, match="names no image; write one a line"):
        yolo(data, {}, {"val.txt": "\n"})


def test_roboflow_names_folders_next_to_its_file_as_if_they_were_above(yolo):
    source = yolo(f"val: ../valid/images\nnc: 2\n{NAMES}", {"valid/images/a.jpg": BOX})
    assert corners(source) == {"a.jpg": CORNERS}


@pytest.mark.parametrize(
    "names",
    [
        "[007, no, 1e3, 1_000, 2024-01-01, null, 'on', Yes]",
        "{0: 007, 1: no, 2: 1e3, 3: 1_000, 4: 2024-01-01, 5: null, 6: 'on', 7: Yes}",
    ],
)
def test_classes_are_named_as_they_are_written(yolo, names):
    source = yolo(f"val: images\nnames: {names}\nnc: 8\n", {"images/a.jpg": BOX})
    written = ("007", "no", "1e3", "1_000", "2024-01-01", "null", "on", "Yes")
    assert source.classes.names == written
    assert source.classes.names[source[0].boxes.labels[0]] == "no"


def test_a_number_of_classes_that_is_not_that_of_the_names_is_refused(yolo):
    with pytest.raises(UsageError, match="has nc: 3, but 2 names; correct one"):
        yolo(f"val: images\nnc: 3\n{NAMES}", {"images/a.jpg": BOX})


def test_images_without_a_file_of_labels_are_counted_apart_from_empty_ones(yolo):
    labels = {"images/a.jpg": BOX, "images/b.jpg": "", "images/c.jpg": None}
    notes = yolo(f"val: images\n{NAMES}", labels).notes
    assert any("2 images without any object, first 'b.jpg'" in note for note in notes)
    assert any("1 image without a file of labels, first 'c.jpg'" in note for note in notes)


def test_labels_whose_image_is_missing_are_counted(yolo):
    """The numbers were those of the other images, and nothing said so."""
    labels = {"images/val/a.jpg": BOX, "images/train/b.jpg": BOX}
    lost = {"labels/val/x/c.txt": BOX, "labels/val/d.txt": BOX, "labels/val/classes.txt": "cat"}
    notes = yolo(f"val: images/val\ntrain: images/train\n{NAMES}", labels, lost).notes
    assert "2 files of labels without an image, first 'd.txt': left out" in notes
    # a list may name a part of a folder
    notes = yolo(f"val: list.txt\n{NAMES}", labels, {"list.txt": "images/val/a.jpg\n"}).notes
    assert not any("without an image" in note for note in notes)


@pytest.mark.parametrize("orientation", [3, 6])
def test_an_image_that_its_trainer_turns_before_it_lays_boxes_on_it_is_refused(
    yolo, tmp_path, orientation
):
    exif = Image.Exif()
    exif[0x0112] = orientation
    (tmp_path / "images").mkdir()
    path = tmp_path / "images" / "a.jpg"
    Image.new("RGB", (200, 100)).save(path, exif=exif)
    turned = cv2.imread(str(path))  # as trainers read it
    assert turned.shape[:2] == ((100, 200) if orientation == 3 else (200, 100))
    with pytest.raises(UsageError, match=f"EXIF orientation {orientation}.*rotate its pixels"):
        yolo(f"val: images\n{NAMES}", {"images/a.jpg": BOX})


def test_names_that_no_file_can_have_are_missing_images_or_refused(yolo):
    long_name = f"images/{'a' * 5000}.jpg"
    source = yolo(f"val: val.txt\n{NAMES}", {}, {"val.txt": f"{long_name}\n"})
    assert [path.endswith(long_name) for path in source.missing()] == [True]
    with pytest.raises(UsageError, match="File name too long"):
        yolo(f"val: {long_name}\n{NAMES}", {})
