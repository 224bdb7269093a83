"""Makes a review of frames and one of boxes, decides some items, and checks every page.

::

    python tools/look_at_review.py --out /tmp/review              # two sets, two servers, all pages
    python tools/look_at_review.py --out /tmp/review --pictures   # and the pictures of docs/images

Each page is opened in five windows, from a desktop's to a small phone's, two of them dark, as a
reviewer or the admin. Screenshots go to `OUT/shots`. Every cut or empty part, request to another
address or violation of axe-core is printed, and the exit status is 1 if there is any. The frames
are those of the packaged video; `--data`: the folder of real data, of which the frames of DAVIS and
the mistakes of a detector on COCO are reviewed instead.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "fixtures"), str(ROOT / "tools")]

import page_checks  # noqa: E402
from build_gallery import IMAGES, shrink  # noqa: E402
from conftest import CHROMIUM, FLAGS  # noqa: E402
from look_at_reports import BIKES, Place  # noqa: E402
from tutorial_inputs import find_video  # noqa: E402

LABELS = ROOT / "examples" / "bikes.json"
READY = "#item[aria-busy=false]:not([hidden])"
REST = "#rest:not([hidden])"
PEOPLE = ("Ann", "Bob", "Chi", "Dee")
BOXES = (
    *((120, 5, 42, 290, 228, "car"), (120, 350, 8, 138, 248, "person")),
    (120, 372, 180, 145, 92, "bicycle"),
)
"""Frame of the packaged video, x, y, width and height in pixels, class."""


@dataclass(frozen=True)
class Served:
    """A running review. `links`: name → private link, the admin's included."""

    base: str
    links: Mapping[str, str]


@contextmanager
def serve(root: Path) -> Iterator[Served]:
    """`steadyeye review` over a set in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    names = [word for name in PEOPLE for word in ("--reviewer", name)]
    words = [sys.executable, "-m", "steadyeye", "review", str(root), "--port", str(port), *names]
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(  # noqa: S603
        words, stdout=subprocess.PIPE, text=True, env=surroundings
    ) as process:
        links = {}
        assert process.stdout
        for line in process.stdout:
            if match := re.match(r"\s*(\S+?):?\s+(http://\S+/r#\S+)", line):
                links[match[1]] = match[2]
            if line.startswith("reviewing"):
                break
        base = f"http://127.0.0.1:{port}"
        wait_for_answer(process, port)
        try:
            yield Served(base, links)
        finally:
            process.send_signal(signal.SIGINT)


def wait_for_answer(process: subprocess.Popen[str], port: int) -> None:
    """Waits until a server accepts connections; raises `RuntimeError` if it ended."""
    while process.poll() is None:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("the server did not start")


def make_frames(at: Place) -> Path:
    """A set of frames to review: the packaged video, or DAVIS with `--data`."""
    out = at.out / "set"
    if not out.exists():
        if at.data.is_dir():
            source = ["--data", at.davis("anchors=2, k=3")]
        else:
            source = [BIKES, "--labels", str(LABELS), "--anchors", "3", "--k", "3"]
        at.steadyeye("sample", *source, "--out", out, "--quiet")
    return set_votes(out, {"anchors": 1, "pairs": 2, "joint": 0})


def make_boxes(at: Place) -> Path:
    """A set of boxes to review: drawn on the packaged video, or mined with `--data`."""
    out = at.out / "boxes"
    if not out.exists() and at.data.is_dir():
        how = ("--data", at.coco, "--score", "0.5")
        at.steadyeye("mine", *at.yolox, *how, "--out", out, "--quiet")
    elif not out.exists():
        folder = write_pictures(at.out / "inputs")
        frames, names = sorted({box[0] for box in BOXES}), sorted({box[-1] for box in BOXES})
        content = {
            "images": [{"id": n, "file_name": f"{n}.png"} for n in frames],
            "categories": [{"id": n, "name": name} for n, name in enumerate(names)],
            "annotations": [
                {"id": n, "image_id": frame, "bbox": box, "category_id": names.index(name)}
                for n, (frame, *box, name) in enumerate(BOXES)
            ],
        }
        (folder / "boxes.json").write_text(json.dumps(content))
        where = ("--boxes", folder / "boxes.json", "--images", folder)
        at.steadyeye("sample", *where, "--out", out, "--quiet")
    return set_votes(out, {"classification": 1, "boxes": 1, "box_check": 1})


def write_pictures(folder: Path) -> Path:
    """Writes the frames of `BOXES` as pictures into a folder; returns it."""
    import av

    with av.open(str(find_video())) as video:
        for number, frame in enumerate(video.decode(video=0)):
            if number in {box[0] for box in BOXES}:
                frame.to_image().save(folder / f"{number}.png")
    return folder


def set_votes(root: Path, votes: Mapping[str, int]) -> Path:
    """Writes the number of votes of each stage into a set."""
    manifest = json.loads((root / "set.json").read_text())
    (root / "set.json").write_text(json.dumps({**manifest, "review": {"stages": votes}}))
    return root


@dataclass(frozen=True)
class Visit:
    """A visit of a page. `who`: "" for nobody. `keys`: pressed after it is loaded."""

    name: str
    who: str
    path: str
    keys: tuple[str, ...] = ()


OF_FRAMES = (
    Visit("overview", "Ann", "/"),
    Visit("anchors", "Ann", "/stages/anchors"),
    Visit("anchors-search", "Ann", "/stages/anchors", ("/", "b")),
    Visit("pairs", "Ann", "/stages/pairs"),
    Visit("pairs-why", "Ann", "/stages/pairs", ("w", "n", "Shift+m")),
    Visit("pairs-flip", "Ann", "/stages/pairs", ("f",)),
    Visit("pairs-comment", "Ann", "/stages/pairs", ("c",)),
    Visit("joint", "Chi", "/stages/joint"),
    Visit("pairs-guidelines", "Ann", "/stages/pairs", ("h",)),
    Visit("decisions", "Ann", "/decisions"),
    Visit("items", "admin", "/items"),
    Visit("paused", "Dee", "/stages/pairs"),
    Visit("paused-overview", "Dee", "/"),
    Visit("dashboard", "admin", "/dashboard"),
    Visit("dashboard-added", "admin", "/dashboard", ("add",)),
    Visit("no-page", "Ann", "/stages/nothing"),
    Visit("signed-out", "", "/"),
    Visit("bad-link", "", "/r#nobody"),
)
OF_BOXES = (
    Visit("boxes-overview", "Ann", "/"),
    Visit("objects", "Ann", "/stages/classification"),
    Visit("objects-another", "Ann", "/stages/classification", ("o",)),
    Visit("objects-second", "Ann", "/stages/classification", ("1", "y")),
    Visit("boxes", "Ann", "/stages/boxes", ("Tab",)),
    Visit("boxes-outside", "Ann", "/stages/boxes", ("Tab", "o")),
    Visit("rest", "Ann", "/stages/box_check"),
    Visit("box-check", "Bob", "/stages/box_check", ("Tab",)),
    Visit("boxes-dashboard", "admin", "/dashboard"),
)
PLAYED = {
    "set": (
        ("Ann", "anchors", ("g",), 8),
        ("Ann", "anchors", ("b",), 1),
        ("Ann", "pairs", ("y",), 6),
        ("Ann", "pairs", ("n", "Shift+m", "Shift+b", "Enter"), 2),
        ("Ann", "pairs", ("w", "n", "d"), 1),
        ("Ann", "pairs", ("u",), 1),
        ("Bob", "pairs", ("y",), 9),
        ("Bob", "pairs", ("n", "l"), 2),
    ),
    "boxes": (
        ("Ann", "classification", ("1", "a"), 2),
        ("Bob", "classification", ("1", "a"), 40),
        ("Ann", "boxes", ("s",), 1),
    ),
    # all objects, and no boxes, which are for the picture
    "pictured": (("Bob", "classification", ("1", "a"), 40),),
}
"""Set → who decides which items in which stage, by keys, and how many times at most."""


def decide(browser: Any, served: Served, name: str) -> None:
    """Decides a part of a set as in `PLAYED`, and pauses one of the reviewers."""
    pages = {who: browser.new_page() for who in (*PEOPLE, "admin")}
    for who, page in pages.items():
        page_checks.open_link(page, served.links[who])
    for who, stage, keys, times in PLAYED[name]:
        page = pages[who]
        page.goto(f"{served.base}/stages/{stage}")
        for _ in range(times):
            page.wait_for_selector(f"{READY}, {REST}")
            if page.locator(REST).count():
                break
            before = page.get_attribute("#item", "data-assignment")
            for key in keys:
                page.keyboard.press(key)
            page.wait_for_selector(f"{READY}:not([data-assignment='{before}']), {REST}")
        page.wait_for_selector("html[data-unsaved='0']")
    pages["admin"].goto(f"{served.base}/dashboard")
    pages["admin"].get_by_role("button", name="Pause Dee").click()
    pages["admin"].get_by_role("button", name="Let Dee continue").wait_for()
    for page in pages.values():
        page.close()


def visit(browser: Any, served: Served, target: Visit, **window: Any) -> page_checks.Window:
    """A page as in `target`, with its requests; close its `page.context` at the end."""
    look = window.pop("look")
    # a link redirects to the overview, and the check needs pages that stay
    entrance = "/static/review.css" if target.who else target.path
    entrance_page = page_checks.open_page(browser, served.base + entrance, look, **window)
    page = entrance_page.page
    if target.who:
        page_checks.open_link(page, served.links[target.who])
        page.goto(served.base + target.path)
    if "/stages/" in target.path and target.name != "no-page":
        page.wait_for_selector(f"{READY}, {REST}")
    if target.keys == ("add",):
        page.get_by_label("Name of a reviewer to add").fill(f"Eve {time.monotonic_ns() % 10**6}")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Copy").wait_for()
    else:
        for key in target.keys:
            page.keyboard.press(key)
    page_checks.wait_drawn(page)
    page.wait_for_timeout(200)
    return entrance_page


WINDOWS = (
    *(((width, height), "light") for width, height in ((1280, 720), (820, 1180), (390, 780))),
    *(((width, height), "light") for width, height in ((844, 390), (320, 568))),
    *(((width, height), "dark") for width, height in ((1280, 720), (390, 780))),
)
"""Width and height in pixels, and theme."""


def look_at_all(browser: Any, served: Served, visits: tuple[Visit, ...], shots: Path) -> int:
    """Takes the pictures of pages and prints their faults; the number of faults."""
    total = 0
    for target in visits:
        where: dict[str, list[str]] = {}
        for (width, height), theme in WINDOWS:
            look = page_checks.Look(width, theme)
            opened_page = visit(browser, served, target, look=look, height=height)
            page = opened_page.page
            stem = f"{target.name}-{width}x{height}-{theme}"
            page.screenshot(path=shots / f"{stem}.png")
            whole = shots / f"{stem}-whole.png"
            if page.evaluate("document.documentElement.scrollHeight > innerHeight"):
                page.screenshot(path=whole, full_page=True)
            own = ("asks for " + served.base, "complains: Failed to load resource")
            faults = [*page_checks.find_faults(opened_page), *page_checks.find_violations(page)]
            for line in faults:
                if not line.startswith(own):
                    where.setdefault(line, []).append(f"{width}x{height} {theme}")
            page.context.close()
        total += len(where)
        print(f"{target.name}: {len(where)} faults", flush=True)
        for line, looks in where.items():
            print(f"  {line} ({', '.join(looks)})")
    return total


WIDE, TABLET, PHONE = (1280, 720), (820, 1180), (390, 780)
PICTURES: Mapping[str, tuple[Visit, tuple[int, int], str]] = {
    "review-pairs": (Visit("", "Ann", "/stages/pairs"), WIDE, "light"),
    "review-tablet": (Visit("", "Ann", "/stages/pairs", ("n", "Shift+m")), TABLET, "light"),
    "review-phone": (Visit("", "Ann", "/stages/pairs"), PHONE, "dark"),
    "review-dashboard": (Visit("", "admin", "/dashboard"), (1280, 1330), "light"),
    "review-boxes": (Visit("", "Ann", "/stages/boxes", ("Tab",)), WIDE, "light"),
}
"""Picture of the docs → the page, its width and height in pixels, and its theme."""


def take_pictures(browser: Any, served: Served, boxes: bool) -> None:
    """Writes the pictures of `PICTURES` that are of a set of boxes, or of frames."""
    for name, (target, (width, height), theme) in PICTURES.items():
        if (target.path == "/stages/boxes") == boxes:
            opened_page = visit(browser, served, target, look=page_checks.Look(width, theme))
            opened_page.page.set_viewport_size({"width": width, "height": height})
            shrink(opened_page.page.screenshot(), IMAGES / f"{name}.webp", height)
            opened_page.page.context.close()


def main() -> int:
    """Makes the sets and checks their pages; 1 if there is any fault."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="a folder outside the repository")
    parser.add_argument("--data", type=Path, default=Path("/nowhere"), help="the folder of data")
    parser.add_argument("--pictures", action="store_true", help="write the pictures of the docs")
    arguments = parser.parse_args()
    if arguments.pictures and arguments.data.is_dir():
        parser.error("pictures of the docs are of the packaged video; leave --data")
    at = Place(arguments.out.resolve(), arguments.data.resolve())
    shots = at.out / "shots"
    for folder in ("set", "boxes", "inputs", "shots"):
        shutil.rmtree(at.out / folder, ignore_errors=True)
    shots.mkdir(parents=True)
    (at.out / "inputs").mkdir()
    faults = 0
    makers: tuple[Callable[[Place], Path], ...] = (make_frames, make_boxes)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        for make, visits in zip(makers, (OF_FRAMES, OF_BOXES), strict=True):
            root = make(at)
            with serve(root) as served:
                pictured = arguments.pictures and root.name == "boxes"
                decide(browser, served, "pictured" if pictured else root.name)
                if arguments.pictures:
                    take_pictures(browser, served, root.name == "boxes")
                else:
                    faults += look_at_all(browser, served, visits, shots)
        browser.close()
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
