"""Takes the picture of a detector's report in the docs (docs/images/boxes.webp).

::

    python tools/picture_of_boxes.py --models FOLDER     # with yolox_nano.onnx and FastestDet.onnx

FastestDet on the packaged video, which has no true boxes: the confident detections of YOLOX-nano
replace them, so that the picture shows the page and not the quality of either detector.
"""

import argparse
import csv
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "src")]

from build_gallery import CHROMIUM, HEIGHT, IMAGES, WIDTH, shrink  # noqa: E402
from tutorial_inputs import find_video  # noqa: E402

SURE = 0.5
"""The score above which a detection of YOLOX-nano counts as a true box."""

SECTION = "Detection errors on anchors and worst frames"


def write_boxes(path: Path, model: Path) -> None:
    """Writes the confident detections of YOLOX-nano on every frame of the packaged video."""
    import av

    from steadyeye.core import plugins
    from steadyeye.core.spec import Spec

    detector = plugins.build(
        "models", Spec("onnx_detector", {"path": str(model), "decoder": "yolox"})
    )
    with av.open(str(find_video())) as video, path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("video", "frame", "label", "x0", "y0", "x1", "y1"))
        for number, frame in enumerate(video.decode(video=0)):
            (detections,) = detector([frame.to_ndarray(format="rgb24")])
            for box, label, score in zip(
                detections.boxes, detections.labels, detections.scores, strict=True
            ):
                if score > SURE:
                    rows.writerow(("clip.mp4", number, detector.classes.names[label], *box))


def write_report(folder: Path, models: Path) -> Path:
    """Runs FastestDet on the video with these boxes; returns its report."""
    (folder / "clip.mp4").symlink_to(find_video())
    write_boxes(folder / "boxes.csv", models / "yolox_nano.onnx")
    words = [
        *(
            "run",
            f"--model=onnx_detector(path='{models / 'FastestDet.onnx'}', decoder='fastestdet')",
        ),
        "--data=video(path='clip.mp4', anchors=12, k=10, boxes='boxes.csv')",
        *("--out=run", "--quiet"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "steadyeye", *words]
    subprocess.run(command, cwd=folder, env=environment, check=True)  # noqa: S603
    return folder / "run" / "report.html"


def main() -> int:
    """Makes the report and takes the picture of the frames that break the detector."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", type=Path, required=True, help="the folder of the detectors")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        report = write_report(Path(folder), arguments.models.resolve())
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        size = {"width": WIDTH, "height": HEIGHT}
        page = browser.new_page(viewport=size, color_scheme="light")
        page.goto(report.as_uri())
        page.wait_for_timeout(1000)
        section = page.locator("section", has=page.get_by_role("heading", name=SECTION, exact=True))
        place = section.locator(".gallery").last
        place.scroll_into_view_if_needed()
        page.wait_for_timeout(1000)
        shrink(place.screenshot(), IMAGES / "boxes.webp")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
