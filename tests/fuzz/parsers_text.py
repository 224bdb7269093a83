"""What is written as text, a table or XML."""

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fuzzing import Parser
from PIL import Image

from steadyeye.core import spec
from steadyeye.core.errors import UsageError
from steadyeye.data.annotations import box_file, review_set
from steadyeye.data.classes import class_lists, map_file
from steadyeye.data.open_images import classes as open_images_classes
from steadyeye.data.open_images.annotation_files import read_boxes as read_open_boxes
from steadyeye.data.open_images.annotation_files import read_labels as read_open_labels
from steadyeye.data.sources.mot import mot
from steadyeye.data.sources.voc import voc
from steadyeye.data.sources.yolo import yolo
from steadyeye.data.video import label_sidecar
from steadyeye.report import gate
from steadyeye.runner import job

NAMES = class_lists.classes_of_names({"car": None, "dog": None, "tench": None})
TABLE = pa.schema([("image", pa.string()), ("labels", pa.list_(pa.string())), ("n", pa.int64())])
HEADS = "ImageID,Source,LabelName,Confidence"


def write(files, folder):
    """Writes name → text into a folder; pictures are drawn for names that end in .png or .jpg."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in (".png", ".jpg", ".JPEG"):
            Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(path)
        else:
            path.write_text(text, encoding="utf-8")


def write_table(folder):
    """A table as those of a review set."""
    rows = {"image": ["a", "b"], "labels": [["car"], None], "n": [1, None]}
    pq.write_table(pa.table(rows, TABLE), folder / "images.parquet")


def read_lines(read, file, folder):
    """Reads each line of a file as a text that a user typed, and names the file in errors."""
    for line in (folder / file).read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            read(line)
        except UsageError as error:
            raise UsageError(f"'{file}': {error}") from error


def read_open_images(read, file, folder):
    """Reads a table of Open Images with the classes in the file beside it."""
    return read(folder / file, open_images_classes.kinds(folder / "classes.csv", None))


def read_class_map(file, folder):
    """Reads a map between two lists of classes."""
    return map_file.from_file(folder / file, NAMES, NAMES)


VOC = (
    "<annotation><filename>a.png</filename><size><width>8</width><height>8</height></size>"
    "<object><name>car</name><difficult>0</difficult><bndbox><xmin>1</xmin><ymin>1</ymin>"
    "<xmax>4</xmax><ymax>4.5</ymax></bndbox></object></annotation>\n"
)
BOMB = (
    b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
    b"]><annotation><filename>&b;</filename></annotation>"
)
OUTSIDE = (
    b'<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    b"<annotation><filename>&a;</filename></annotation>"
)
YOLO = {
    "data.yaml": "path: .\nval: images/val\nnames:\n  0: car\n  1: dog\n",
    "images/val/a.png": "",
    "labels/val/a.txt": "0 0.5 0.5 0.25 0.25\n1 0.1 0.1 0.3 0.1 0.3 0.4\n",
}
MOT = {
    "one/seqinfo.ini": "[Sequence]\nname=one\nimDir=img1\nseqLength=2\nimWidth=8\nimHeight=8\n",
    "one/gt/gt.txt": "1,1,1,1,4,4,1,1,1\n2,1,2,1,4,4,1,3,0.5\n",
    "one/img1/000001.jpg": "",
    "one/img1/000002.jpg": "",
}
OPEN_IMAGES = {
    "classes.csv": "LabelName,DisplayName\n/m/0k4j,Car\n/m/0bt9lr,Dog\n",
    "boxes.csv": f"{HEADS},XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,"
    "IsInside\na,xclick,/m/0k4j,1,0.1,0.5,0.1,0.5,0,0,0,0,0\nb,xclick,/m/0bt9lr,1,0,1,0,1,0,0,1,0,0\n",
    "labels.csv": f"{HEADS}\na,verification,/m/0k4j,1\nb,verification,/m/0bt9lr,0\n",
}
JOB = (
    'models = ["timm(name=\'a\')"]\ndata = ["images(path=\'b\')"]\nmetrics = "accuracy"\n'
    'out = "run"\nseed = 1\n'
)
SPECS = "accuracy\npm_k(k=10)\nvideo(path='clip.mp4', sizes=[1, 2.5, None], more={'a': True})\n"
CONDITIONS = "accuracy >= 0.7\npm_k(k=10) > 70%\n"

PARSERS = [
    Parser(
        "yolo",
        partial(write, YOLO),
        lambda folder: yolo(str(folder / "data.yaml")),
        {"data.yaml": "lines", "labels/val/*.txt": "lines"},
        known_faults=(("data.yaml", b"val: " + b"a" * 5_000 + b"\nnames: [car]\n"),),
    ),
    Parser(
        "voc",
        partial(write, {"xml/a.xml": VOC, "images/a.png": ""}),
        lambda folder: voc(str(folder / "xml"), str(folder / "images")),
        {"xml/*.xml": "text"},
        known_faults=(("xml/a.xml", BOMB), ("xml/a.xml", OUTSIDE)),
    ),
    Parser(
        "mot",
        partial(write, MOT),
        lambda folder: mot(str(folder)),
        {"*/seqinfo.ini": "lines", "*/gt/gt.txt": "csv"},
    ),
    Parser(
        "open-images-boxes",
        partial(write, OPEN_IMAGES),
        partial(read_open_images, read_open_boxes, "boxes.csv"),
        {"boxes.csv": "csv", "classes.csv": "csv"},
        known_faults=(("boxes.csv", b"ImageID,LabelName\ra,/m/0k4j\r"),),
    ),
    Parser(
        "open-images-labels",
        partial(write, OPEN_IMAGES),
        partial(read_open_images, read_open_labels, "labels.csv"),
        {"labels.csv": "csv"},
    ),
    Parser(
        "class-list-text",
        partial(write, {"a.txt": "# ours\ncar\nn02084071 dog\ntench,n01440764\n"}),
        lambda folder: class_lists.read(str(folder / "a.txt")),
        {"a.txt": "lines"},
    ),
    Parser(
        "class-list-table",
        partial(write, {"a.csv": "name,wnid\ncar,\ndog,n02084071\n"}),
        lambda folder: class_lists.read(str(folder / "a.csv")),
        {"a.csv": "csv"},
    ),
    Parser(
        "class-map-table",
        partial(write, {"a.csv": "model,model_index,data\ncar,0,car\ndog,1,dog\n"}),
        partial(read_class_map, "a.csv"),
        {"a.csv": "csv"},
    ),
    Parser(
        "labels-of-videos-table",
        partial(write, {"a.csv": "video,first,last,labels\nb.mp4,0,10,car|dog\nc.mp4,,,dog\n"}),
        lambda folder: label_sidecar.read(str(folder / "a.csv")),
        {"a.csv": "csv"},
    ),
    Parser(
        "boxes-of-videos-table",
        partial(write, {"a.csv": "video,frame,label,x0,y0,x1,y1,crowd\nb,0,car,1,2,3.5,4,0\n"}),
        lambda folder: box_file.read(str(folder / "a.csv")),
        {"a.csv": "csv"},
        known_faults=(("a.csv", b'video,"a\nb"\nb,1\n'),),
    ),
    Parser(
        "job",
        partial(write, {"job.toml": JOB}),
        lambda folder: job.read(folder / "job.toml", {}),
        {"job.toml": "lines"},
        known_faults=(("job.toml", b"epochs = 1\n"), ("job.toml", b"seed = 1\n")),
    ),
    Parser(
        "specs",
        partial(write, {"specs.txt": SPECS}),
        partial(read_lines, spec.split, "specs.txt"),
        {"specs.txt": "lines"},
        known_faults=(("specs.txt", b"a(b=[1\x0c2])"),),
    ),
    Parser(
        "gate-conditions",
        partial(write, {"gate.txt": CONDITIONS}),
        partial(read_lines, lambda line: line.strip() and gate.requirement(line), "gate.txt"),
        {"gate.txt": "lines"},
        known_faults=(("gate.txt", b"accuracy >= 0.7\0"), ("gate.txt", b"a > " + b"[" * 100_000)),
    ),
    Parser(
        "review-set-table",
        write_table,
        lambda folder: review_set._table(folder / "images.parquet", TABLE),
        {"images.parquet": "bytes"},
        known_faults=(("images.parquet", b"PAR1" + bytes(40) + b"\x28\0\0\0PAR1"),),
    ),
]
