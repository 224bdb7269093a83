"""Images, masks, videos and their containers."""

import io
import tarfile

import cv2
import encoded
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzzing import Parser
from parsers_text import write
from PIL import Image as Pillow

from steadyeye.core.errors import SampleError
from steadyeye.core.storage import tar_index
from steadyeye.data.images import image_file
from steadyeye.data.sources.davis import davis
from steadyeye.data.sources.every_frame import every_frame
from steadyeye.data.sources.hf_dataset import hf_dataset
from steadyeye.data.sources.webdataset import webdataset

PIXELS = np.random.default_rng(0).integers(0, 256, (24, 32, 3), dtype=np.uint8)
PIXELS[:12] = 90  # so that packing finds something
IMAGES = {
    "jpeg": ("a.jpg", {}),
    "jpeg-progressive": ("a.jpg", {"progressive": True, "exif": b"Exif\0\0MM\0*\0\0\0\x08\0\0"}),
    "png": ("a.png", {}),
    "tiff": ("a.tif", {"compression": "tiff_lzw"}),
    "webp": ("a.webp", {"exif": b"Exif\0\0"}),
    "gif": ("a.gif", {}),
    "bmp": ("a.bmp", {}),
    "pnm": ("a.ppm", {}),
    "avif": ("a.avif", {}),
}
VIDEOS = {
    "video-mp4": ("a.mp4", "libx264"),
    "video-mkv": ("a.mkv", "libx264"),
    "video-ts": ("a.ts", "libx264"),
    "video-webm": ("a.webm", "libvpx-vp9"),
    "video-avi": ("a.avi", "mpeg4"),
}


def read_image(folder):
    """Reads the only file of a folder, and its size without decoding it."""
    (path,) = folder.iterdir()
    image_file.size(path)
    image_file.read(path)


def parse_image(name):
    file, options = IMAGES[name]
    return Parser(
        name,
        lambda folder: Pillow.fromarray(PIXELS).save(folder / file, **options),
        read_image,
        {file: "bytes"},
    )


def read_samples(source):
    """Decodes every sample; one that cannot be decoded is no fault of the others."""
    refusal = None
    for index in range(len(source)):
        try:
            source[index].image()
        except SampleError as error:
            refusal = error
    if refusal:
        raise refusal


def parse_video(name):
    file, codec = VIDEOS[name]
    return Parser(
        name,
        lambda folder: encoded.write(folder / file, codec, count=8, group=4, size=(64, 48)),
        lambda folder: read_samples(every_frame(str(folder / file), cuts="none")),
        {file: "bytes"},
    )


def build_davis(folder):
    objects = np.digitize(PIXELS[..., 0], (100, 200)).astype(np.uint8)
    jpeg = cv2.imencode(".jpg", PIXELS)[1].tobytes()
    mask = cv2.imencode(".png", objects)[1].tobytes()
    palette = io.BytesIO()
    numbers = Pillow.fromarray(objects, "P")
    numbers.putpalette([0, 0, 0, 200, 0, 0, 0, 200, 0])
    numbers.save(palette, "PNG")
    write({"labels.csv": "video,labels\ndog,cat|cat\n"}, folder)
    for number, content in enumerate((mask, palette.getvalue())):
        for kind, name, data in (("JPEGImages", "jpg", jpeg), ("Annotations", "png", content)):
            path = folder / kind / "dog" / f"{number:05d}.{name}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def build_tar(folder):
    picture = cv2.imencode(".png", PIXELS)[1].tobytes()
    with tarfile.open(folder / "a.tar", "w") as tar:
        for number in range(3):
            files = {"png": picture, "cls": b"1", "json": b'{"caption": "a cat"}'}
            for suffix, content in files.items():
                entry = tarfile.TarInfo(f"{number:05d}.{suffix}")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    (folder / "names.txt").write_text("cat\ndog\n")


def read_index(folder):
    """Reads a tar by an index that was kept of it; one that is damaged is made anew, or refused."""
    tar = folder / "a.tar"
    (index,) = (folder / "index").iterdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(tar_index.VARIABLE, str(folder / "index"))
        # an index is named by where its tar lies
        index.rename(tar_index._cache_path(tar))
        read_samples(webdataset(str(tar), classes=str(folder / "names.txt")))


def build_index(folder):
    build_tar(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(tar_index.VARIABLE, str(folder / "index"))
        webdataset(str(folder / "a.tar"), classes=str(folder / "names.txt"))


def build_parquet(folder):
    picture = cv2.imencode(".png", PIXELS)[1].tobytes()
    rows = [{"image": {"bytes": picture, "path": None}, "label": n % 2} for n in range(4)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "train-00000-of-00001.parquet")
    (folder / "names.txt").write_text("cat\ndog\n")


PARSERS = [
    *map(parse_image, IMAGES),
    *map(parse_video, VIDEOS),
    Parser(
        "davis-masks",
        build_davis,
        lambda folder: davis(str(folder), str(folder / "labels.csv"), anchors="all", k=0),
        {"Annotations/dog/*": "bytes", "labels.csv": "csv"},
    ),
    Parser(
        "webdataset-tar",
        build_tar,
        lambda folder: read_samples(
            webdataset(str(folder / "a.tar"), classes=str(folder / "names.txt"))
        ),
        {"a.tar": "bytes"},
    ),
    Parser("index-of-a-tar", build_index, read_index, {"index/*.arrow": "bytes"}),
    Parser(
        "parquet",
        build_parquet,
        lambda folder: read_samples(hf_dataset(str(folder), classes=str(folder / "names.txt"))),
        {"*.parquet": "bytes"},
    ),
]
