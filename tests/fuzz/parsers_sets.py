"""Released sets, and sets that people reviewed, as a run reads them."""

import json
from functools import partial

import numpy as np
from fuzzing import Parser
from parsers_json import describe_coco
from parsers_media import read_samples
from parsers_text import write
from PIL import Image
from review_boxes import candidates
from review_boxes import write as write_candidates
from review_toys import GOOD, Review, draw, source

from steadyeye.core.errors import SampleError
from steadyeye.core.storage import sha256sums
from steadyeye.data.annotations import review_candidates, review_set
from steadyeye.data.annotations.ytbb_reviews import FLAWS, SIMILAR
from steadyeye.data.open_images import classes as open_images_classes
from steadyeye.data.sources.imagenet_vid import imagenet_vid
from steadyeye.data.sources.imagenet_vid_robust import imagenet_vid_robust
from steadyeye.data.sources.nao import nao
from steadyeye.data.sources.reviewed import reviewed
from steadyeye.data.sources.ytbb_robust import CSV, ytbb_robust
from steadyeye.review.interchange.formats import export_formats

FRAMES = [
    f"frames/{v}/frame-{n}.jpg"
    for v, first in (("dog_1000", 9), ("cat_2000", 2))
    for n in range(first, first + 3)
]
TREE = {
    "LabelName": "/m/0bl9f",
    "Subcategory": [
        {"LabelName": "/m/0k4j", "Subcategory": [{"LabelName": "/m/0bt9lr"}]},
        {"LabelName": "/m/01g317", "Part": [{"LabelName": "/m/0283dt1"}]},
    ],
}
XML = (
    "<annotation><object><name>n02084071</name><bndbox><xmin>1</xmin><ymin>1</ymin>"
    "<xmax>4</xmax><ymax>4.5</ymax></bndbox></object></annotation>\n"
)


def write_json(folder, **contents):
    """Writes name → content as JSON, `__` in a name for a slash."""
    for name, content in contents.items():
        path = folder / f"{name.replace('__', '/')}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))


def read_source(build, folder):
    """Builds a source, and decodes what it is of; an image that is gone is no fault of others."""
    built = build(str(folder))
    if built.missing():
        raise SampleError(f"no '{built.missing()[0]}'")
    assert len([*built.ids]) == len([*built.truths]) == len(built)
    read_samples(built)


def build_ytbb(folder):
    write(dict.fromkeys(FRAMES, ""), folder)
    write({f"metadata/{CSV}": "ytid,time_ms,label,x\ndog,1000,3,1\ncat,2000,22,2\n"}, folder)
    labels = [SIMILAR, *FLAWS]
    key = "a/dog_1000/frame-10.jpg,a/dog_1000/frame-{}.jpg"
    pairs = [
        {"key": key.format(9), "labels": [0]},
        {"key": key.format(11).split(","), "labels": ["similar", 1]},
    ]
    anchors = [
        {"key": "dog_1000/frame-10.jpg", "labels": [0, "car"]},
        {"key": "cat_2000/frame-3.jpg", "labels": [2]},
    ]
    write_json(
        folder,
        metadata__pmk_labels={"labels": labels, "annotations": pairs},
        metadata__anchor_labels={
            "labels": ["good", "unsure", "bad", "car"],
            "annotations": anchors,
        },
    )


def build_vid_robust(folder):
    frames = [f"val/dog/{n:06d}.JPEG" for n in range(3)]
    write(dict.fromkeys(frames, ""), folder)
    write_json(
        folder,
        metadata__pmsets={frames[1]: [frames[0], frames[2]]},
        metadata__labels={frame: [0, 1] for frame in frames},
        metadata__classes=["cat", "dog"],
    )


def build_vid(folder):
    for number in range(3):
        name = f"VID/val/dog/{number:06d}"
        write({f"Data/{name}.JPEG": "", f"Annotations/{name}.xml": XML}, folder)


def build_nao(folder):
    write({"images/a.png": "", "images/b.png": ""}, folder)
    first, last = describe_coco(["a.png", "b.png"]), describe_coco(["a.png", "b.png"])
    for image in first["images"]:
        image["_image_id"] = image["file_name"][0]
    names = ("train", "validation", "test")
    contents = zip(names, (first, last, last), strict=True)
    write_json(folder, **{f"annotations__instances_{name}": content for name, content in contents})


def build_reviewed(folder):
    """A set that people reviewed; without the sums, by which every change of a table is noticed."""
    draw([source(anchors=2, k=1)], folder / "drawn")
    review = Review(review_set.read(folder / "drawn"), stages={"anchors": 1, "pairs": 1})
    review.everything("anchors", lambda question: GOOD)
    review.everything("pairs", lambda question: {"correct": "yes", "similar": "yes"})
    with review.db.reading() as connection:
        export_formats(
            connection,
            review.folder,
            review.plan,
            folder / "set",
            names=["set", "pmsets"],
            partial=True,
        )
    (folder / "set" / sha256sums.NAME).unlink()


def read_reviewed(folder):
    for review in (True, False):
        read_source(partial(reviewed, review=review), folder / "set")


def build_exported_sums(folder):
    write({"images/a.png": "", "images/b.png": ""}, folder)
    write_json(folder, annotations=describe_coco(["a.png", "b.png"]))
    sha256sums.write_sums(folder, sorted(folder.rglob("*.*")))


def build_candidates(folder):
    write_candidates(folder, candidates())
    content = json.loads((folder / "candidates.json").read_text())
    content["annotations"][0] |= {"score": 0.9, "annotated": "dog"}
    content["annotations"][1] |= {"score": 1, "annotated": None}
    (folder / "candidates.json").write_text(json.dumps(content))


def read_candidates(folder):
    from steadyeye.review.sampling.sampling import sample_boxes

    path = folder / "candidates.json"
    assert review_candidates.read(path).boxes
    sample_boxes(path, folder / "images", folder / "out", lambda done: None)
    review_set.read(folder / "out")


def build_stored_pictures(folder):
    picture = np.random.default_rng(0).integers(0, 256, (32, 40, 3), dtype=np.uint8)
    write_candidates(folder, candidates(), suffixes=("jpg", "jpg", "jpg"))
    exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
    for name in "abc":
        Image.fromarray(picture).save(folder / f"images/in/{name}.jpg", exif=exif)
        picture = 255 - picture // 2


PARSERS = [
    Parser(
        "ytbb-robust",
        build_ytbb,
        partial(read_source, partial(ytbb_robust, k=1)),
        {"metadata/*.json": "json", "metadata/*.csv": "csv"},
    ),
    Parser(
        "ytbb-robust-with-review",
        build_ytbb,
        partial(read_source, partial(ytbb_robust, k=1, review=False)),
        {"metadata/*.json": "json", "metadata/*.csv": "csv"},
    ),
    Parser(
        "imagenet-vid-robust",
        build_vid_robust,
        partial(read_source, imagenet_vid_robust),
        {"metadata/*.json": "json"},
    ),
    Parser(
        "imagenet-vid",
        build_vid,
        partial(read_source, partial(imagenet_vid, k=1)),
        {"Annotations/VID/val/*/*.xml": "text"},
    ),
    Parser("nao", build_nao, partial(read_source, nao), {"annotations/*.json": "json"}),
    Parser(
        "open-images-hierarchy",
        lambda folder: write_json(folder, tree=TREE),
        lambda folder: open_images_classes.kinds(None, folder / "tree.json"),
        {"tree.json": "json"},
    ),
    Parser(
        "reviewed-set",
        build_reviewed,
        read_reviewed,
        {
            "set/set.json": "json",
            "set/frames.parquet": "bytes",
            "set/images/*/*.jpg": "bytes",
        },
    ),
    Parser(
        "reviewed-set-as-vid-robust",
        build_reviewed,
        lambda folder: read_source(imagenet_vid_robust, folder / "set"),
        {"set/metadata/*.json": "json"},
    ),
    Parser(
        "sums",
        build_exported_sums,
        partial(read_source, nao),
        {"SHA256SUMS": "lines", "annotations.json": "json"},
    ),
    Parser("candidates", build_candidates, read_candidates, {"candidates.json": "json"}),
    Parser(
        "pictures-to-review", build_stored_pictures, read_candidates, {"images/in/*.jpg": "bytes"}
    ),
]
