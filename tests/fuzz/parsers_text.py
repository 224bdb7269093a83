"""What is written as lines, tables, INI, TOML, YAML or XML."""

import json

from fuzzing import Parser
from PIL import Image

from steadyeye.data.annotations import box_file
from steadyeye.data.classes import class_lists, map_file
from steadyeye.data.sources.mot import mot
from steadyeye.data.sources.voc import voc
from steadyeye.data.sources.yolo import yolo
from steadyeye.data.video import label_sidecar
from steadyeye.runner import job

NAMES = ("cat", "dog", "traffic light")


def write_image(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 30), (90, 120, 30)).save(path)


def read_all(source):
    """Asks for all that a source knows without decoding an image."""
    for i in range(len(source)):
        sample = source[i]
        assert sample.id


def build_yolo(folder):
    write_image(folder / "images/val/a.png")
    write_image(folder / "images/val/b.png")
    (folder / "labels/val").mkdir(parents=True)
    (folder / "labels/val/a.txt").write_text("0 0.5 0.5 0.25 0.5\n2 0.25 0.25 0.1 0.2\n")
    (folder / "labels/val/b.txt").write_text("1 0.1 0.1 0.9 0.1 0.9 0.9\n")
    (folder / "data.yaml").write_text(
        "path: .\ntrain: images/val\nval: images/val\nnc: 3\nnames:\n"
        "  0: cat\n  1: dog\n  2: traffic light\n"
    )


VOC = """<annotation>
 <filename>{name}.png</filename>
 <size><width>40</width><height>30</height><depth>3</depth></size>
 <object><name>cat</name><difficult>0</difficult>
  <bndbox><xmin>1</xmin><ymin>2</ymin><xmax>20</xmax><ymax>30</ymax></bndbox></object>
 <object><name>dog</name><difficult>1</difficult>
  <bndbox><xmin>5.5</xmin><ymin>2</ymin><xmax>9</xmax><ymax>8</ymax></bndbox></object>
</annotation>
"""


def build_voc(folder):
    (folder / "annotations").mkdir()
    for name in "ab":
        write_image(folder / "images" / f"{name}.png")
        (folder / "annotations" / f"{name}.xml").write_text(VOC.format(name=name))


def build_mot(folder):
    for frame in range(1, 6):
        write_image(folder / "street/img1" / f"{frame:06}.png")
    (folder / "street/gt").mkdir()
    rows = [f"{n},1,{3 * n},4,10,12,1,1,1.0\n{n},2,5,6,7,8,1,3,0.5" for n in range(1, 6)]
    (folder / "street/gt/gt.txt").write_text("\n".join(rows) + "\n")
    (folder / "street/seqinfo.ini").write_text(
        "[Sequence]\nname=street\nimDir=img1\nframeRate=30\nseqLength=5\n"
        "imWidth=40\nimHeight=30\nimExt=.png\n"
    )


def build_class_lists(folder):
    (folder / "plain.txt").write_text("# classes\ncat\ndog\nn02084071 traffic light\n")
    (folder / "table.csv").write_text("name,wnid\ncat,n02121620\ndog,\ntraffic light,\n")
    (folder / "list.json").write_text(json.dumps(NAMES))
    (folder / "known.json").write_text(json.dumps({"cat": "n02121620", "dog": None}))
    (folder / "id2label.json").write_text(json.dumps({"0": "cat", "1": "dog"}))


def read_class_lists(folder):
    """Each list; the first that is refused ends it, so that the damaged one is what is judged."""
    for path in sorted(folder.iterdir()):
        class_lists.read(str(path))


def build_class_maps(folder):
    (folder / "map.csv").write_text("model,data\ncat,cat\ndog,dog\n")
    (folder / "map.json").write_text(json.dumps({"cat": "cat", "dog": "dog"}))


def read_class_maps(folder):
    classes = class_lists.from_names(NAMES)
    for path in sorted(folder.iterdir()):
        map_file.from_file(path, classes, classes)


def build_boxes(folder):
    rows = [f"clip.mp4,{n},cat,{n}.5,2,20,30" for n in range(5)]
    (folder / "boxes.csv").write_text("video,frame,label,x0,y0,x1,y1\n" + "\n".join(rows) + "\n")


def build_labels(folder):
    (folder / "labels.csv").write_text(
        "video,first,last,labels\nclip.mp4,0,10,cat\nclip.mp4,11,,dog|cat\nother.mp4,,,dog\n"
    )
    (folder / "labels.json").write_text(
        json.dumps(
            {
                "classes": {"cat": "n02121620", "dog": None},
                "videos": {
                    "clip.mp4": {"labels": [{"first": 0, "last": 9, "labels": ["cat"]}]},
                    "*": {"labels": [{"labels": ["dog"]}], "cuts": [5, 9]},
                },
            }
        )
    )


def read_labels(folder):
    for path in sorted(folder.iterdir()):
        sidecar = label_sidecar.read(str(path))
        for name in ("clip.mp4", "third.mp4"):
            assert sidecar.of(name) is not None


def build_job(folder):
    (folder / "job.toml").write_text(
        'models = ["cat.onnx", "timm:resnet18"]\ndata = ["video(path=\'clip.mp4\', k=10)"]\n'
        'out = "runs/a"\nmetrics = "accuracy, pm_k(k=10)"\nbatch = 8\nworkers = 2\n'
    )


PARSERS = [
    Parser(
        "yolo",
        build_yolo,
        lambda folder: read_all(yolo(str(folder / "data.yaml"))),
        {"data.yaml": "lines", "labels/val/*.txt": "lines"},
    ),
    Parser(
        "voc",
        build_voc,
        lambda folder: read_all(voc(str(folder / "annotations"), str(folder / "images"))),
        {"annotations/*.xml": "text"},
    ),
    Parser(
        "mot",
        build_mot,
        lambda folder: read_all(mot(str(folder))),
        {"street/gt/gt.txt": "csv", "street/seqinfo.ini": "lines"},
    ),
    Parser(
        "class-lists",
        build_class_lists,
        read_class_lists,
        {"*.txt": "lines", "*.csv": "csv", "*.json": "json"},
    ),
    Parser("class-maps", build_class_maps, read_class_maps, {"*.csv": "csv", "*.json": "json"}),
    Parser(
        "boxes-csv",
        build_boxes,
        lambda folder: box_file.read(str(folder / "boxes.csv")),
        {"*.csv": "csv"},
    ),
    Parser("label-sidecars", build_labels, read_labels, {"*.csv": "csv", "*.json": "json"}),
    Parser(
        "job", build_job, lambda folder: job.read(folder / "job.toml", {}), {"job.toml": "lines"}
    ),
]
