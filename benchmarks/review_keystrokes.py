"""Seconds per box on the review's page, by a keystroke-level model, compared with CVAT.

    python benchmarks/review_keystrokes.py

Each task is done on the real page in a real browser (Chromium): every key and every movement of the
mouse is made and counted; the saved boxes are compared with the true ones. The same tasks in CVAT
are sequences written from its documentation (user guide: shape mode, track mode, shortcuts;
docs.cvat.ai): CVAT was not run, and its documentation gives no seconds per box. Both are converted
to seconds by the operators of Card, Moran and Newell, "The Keystroke-Level Model for User
Performance Time with Interactive Systems", CACM 23(7), 1980, with the times of `SECONDS`. The model
is for practised users without errors: it compares pages, and says nothing about the time to find an
object's edges.

Rules, the same for both: M before each object that is drawn or moved (where it is), before a change
of class (which one), and before a frame is left (whether all is right). One hand is on the keys and
one on the mouse; H only around typed text. A held modifier is a K of its own.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import simplejpeg
from playwright.sync_api import Page, sync_playwright

from steadyeye.data.annotations.review_set import read
from steadyeye.review import database
from steadyeye.review.protocol.votes import settle_stage
from steadyeye.review.sampling.sampling import sample_boxes

SECONDS = {"K": 0.28, "P": 1.10, "B": 0.10, "H": 0.40, "M": 1.35}
"""Operator → seconds: a key by an average typist who is no secretary, pointing with a mouse, hands
from keys to mouse or back, mental preparation (Card et al. 1980); B, the mouse button pressed or
released: Kieras, "Using the Keystroke-Level Model to Estimate Execution Times", 1993."""

SIZE = (640, 480)
BOXES = 10
OBJECTS, FRAMES, STEP = 3, 21, 10
READY = "#item[aria-busy=false]:not([hidden])"
Box = Sequence[float]


@dataclass
class Hands:
    """What somebody does, counted; with a page it is done there too."""

    page: Page | None = None
    counts: Counter = field(default_factory=Counter)

    def think(self) -> None:
        """Mental preparation."""
        self.counts["M"] += 1

    def press(self, *keys: str) -> None:
        """Keys, one after the other; `Control+1` is two."""
        for key in keys:
            self.counts["K"] += len(key.split("+"))
            if self.page:
                self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        """Text, for which both hands go to the keys."""
        self.counts["H"] += 2
        self.counts["K"] += len(text)
        if self.page:
            self.page.keyboard.type(text)

    def click(self) -> None:
        """Points somewhere and clicks; only where there is no page."""
        self.counts["P"] += 1
        self.counts["B"] += 2

    def drag(self, begin: Box, end: Box) -> None:
        """Points at a place of the picture, presses, points at another and releases."""
        self.counts["P"] += 2
        self.counts["B"] += 2
        if self.page:
            frame = self.page.locator(".over").bounding_box()
            scale = frame["width"] / SIZE[0]
            spots = [(frame["x"] + x * scale, frame["y"] + y * scale) for x, y in (begin, end)]
            self.page.mouse.move(*spots[0])
            self.page.mouse.down()
            self.page.mouse.move(*spots[1], steps=2)
            self.page.mouse.up()

    @property
    def seconds(self) -> float:
        """What the model makes of it."""
        return sum(SECONDS[name] * count for name, count in self.counts.items())


@dataclass(frozen=True)
class Task:
    """A task: what is shown and what is to be drawn, and how it is done here and in CVAT.

    `truth`: frame → (box, class). `suggested`: the boxes that are there at the beginning.
    """

    name: str
    truth: Sequence[Sequence[tuple[Box, str]]]
    review: Callable[["ReviewPage", Sequence[Sequence[tuple[Box, str]]]], None]
    cvat: Callable[[Hands, Sequence[Sequence[tuple[Box, str]]]], None]
    classes: int = 600
    plan: dict[str, Any] = field(default_factory=dict)


def name_class(number: int) -> str:
    """A class that its first three letters tell from all others."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return letters[number // 26 % 26] + letters[number % 26] + letters[number // 676] + f" {number}"


def spread(classes: Sequence[str]) -> Sequence[Sequence[tuple[Box, str]]]:
    """One picture with a box of each class."""
    places = [(20 + 120 * (n % 5), 60 + 200 * (n // 5)) for n in range(len(classes))]
    return [[((x, y, x + 90, y + 130), c) for (x, y), c in zip(places, classes, strict=True)]]


def travel() -> Sequence[Sequence[tuple[Box, str]]]:
    """Objects that go straight on through the frames of a video."""
    return [
        [
            (
                (
                    20 + 150 * n + 4 * f,
                    60 + 100 * n + 2 * f,
                    110 + 150 * n + 4 * f,
                    160 + 100 * n + 2 * f,
                ),
                name_class(n),
            )
            for n in range(OBJECTS)
        ]
        for f in range(FRAMES)
    ]


@dataclass
class ReviewPage:
    """Hands on the page of the review, and the seconds until each next picture stood there."""

    hands: Hands
    waits: list[float] = field(default_factory=list)

    def save(self) -> None:
        """Saves the boxes, and waits for the next picture."""
        page = self.hands.page
        before = page.get_attribute("#item", "data-assignment")
        self.hands.think()
        self.hands.press("s")
        page.wait_for_selector(f"{READY}:not([data-assignment='{before}']), #rest:not([hidden])")
        if not page.locator("#rest:not([hidden])").count():
            page.wait_for_selector("html[data-next-ms]")
            self.waits.append(float(page.get_attribute("html", "data-next-ms")) / 1000)

    def clear(self) -> None:
        """Deletes, uncounted, what stands there because a set holds no picture without a box."""
        page = self.hands.page
        boxes = json.loads(page.get_attribute(".frames", "data-boxes"))
        if boxes[0] == [0, 0, 9, 9]:
            for key in ("Tab", "Delete"):
                page.keyboard.press(key)

    def wait_text(self, text: str) -> None:
        """Waits until the page says something of the frames around."""
        self.hands.page.locator("#between", has_text=text).wait_for()


def draw_in_review(
    review_page: ReviewPage, truth: Any, choose: Callable[[ReviewPage, str], None] | None
) -> None:
    """Draws the boxes of a picture and chooses a class where it is another."""
    review_page.clear()
    hands, last = review_page.hands, None
    for box, label in truth[0]:
        hands.think()
        hands.drag(box[:2], box[2:])
        if choose and label != last:
            hands.think()
            choose(review_page, label)
        last = label
    review_page.save()


def type_in_review(review_page: ReviewPage, label: str) -> None:
    """Finds a class by typing."""
    review_page.hands.press("l")
    review_page.hands.type(label[:3])
    review_page.hands.press("Enter")


def digit_in_review(review_page: ReviewPage, label: str) -> None:
    """Chooses one of nine classes by its digit."""
    review_page.hands.press(str(int(label.split()[1]) + 1))


def mend_in_review(review_page: ReviewPage, truth: Any) -> None:
    """Widens each suggested box by a corner."""
    for box, _ in truth[0]:
        review_page.hands.think()
        review_page.hands.drag((box[2] - 20, box[3] - 20), box[2:])
    review_page.save()


def track_in_review(review_page: ReviewPage, truth: Any) -> None:
    """Draws on the first frame, copies and moves on key frames, confirms those between."""
    draw_frame = [truth[0]]
    draw_in_review(review_page, draw_frame, digit_in_review)
    for frame in range(STEP, FRAMES, STEP):
        review_page.clear()
        review_page.hands.press("p")
        review_page.wait_text(f"From frame {frame - STEP + 1}: {OBJECTS} added")
        for (old, _), (new, _) in zip(truth[frame - STEP], truth[frame], strict=True):
            review_page.hands.think()
            review_page.hands.drag(middle(old), middle(new))
        review_page.save()
    for _ in range(FRAMES - len(range(0, FRAMES, STEP))):
        review_page.wait_text(f"{OBJECTS} added")
        review_page.clear()
        review_page.save()


def middle(box: Box) -> Box:
    """The centre of a box."""
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def begin_cvat(hands: Hands) -> None:
    """The window "Draw new rectangle", and in it Shape or Track, the label as it is."""
    hands.click()
    hands.click()


def draw_cvat(hands: Hands, truth: Any, choose: Callable[[Hands, str], None], first: bool) -> None:
    """N draws again as before (Shortcuts, Modes); two clicks on opposite points (Shape mode)."""
    last = None
    for number, (_, label) in enumerate(truth):
        hands.think()
        if number or not first:
            hands.press("n")
        hands.click()
        hands.click()
        if choose and label != last:
            hands.think()
            choose(hands, label)
        last = label


def shapes_cvat(choose: Callable[[Hands, str], None] | None) -> Callable[[Hands, Any], None]:
    """Boxes on one picture, then the next (F)."""

    def work(hands: Hands, truth: Any) -> None:
        begin_cvat(hands)
        draw_cvat(hands, truth[0], choose, True)
        hands.think()
        hands.press("f")

    return work


def digit_cvat(hands: Hands, label: str) -> None:
    """Ctrl+0..9 switches the label of the active object (Shortcuts)."""
    hands.press("Control+1")


def list_cvat(hands: Hands, label: str) -> None:
    """The list of labels on the object's card, taken to be searched by typing as ours is."""
    hands.click()
    hands.type(label[:3])
    hands.press("Enter")


def mend_cvat(hands: Hands, truth: Any) -> None:
    """A box is active where the mouse is: its corner is dragged (Shape mode)."""
    for _ in truth[0]:
        hands.think()
        hands.drag((0, 0), (0, 0))
    hands.think()
    hands.press("f")


def track_cvat(look: bool) -> Callable[[Hands, Any], None]:
    """Tracks from key frame to key frame (V, a step of ten), then a look at those between (F)."""

    def work(hands: Hands, truth: Any) -> None:
        begin_cvat(hands)
        draw_cvat(hands, truth[0], digit_cvat, True)
        keys = range(STEP, FRAMES, STEP)
        for _ in keys:
            hands.think()
            hands.press("v")
            for _ in range(OBJECTS):
                hands.think()
                hands.drag((0, 0), (0, 0))
        hands.think()
        for _ in range(FRAMES - len(keys) - 1 if look else 0):
            hands.press("f")
            hands.think()

    return work


ONE = spread([name_class(0)] * BOXES)
NINE = spread([name_class(n % 9) for n in range(BOXES)])
ALL = spread([name_class(59 * n) for n in range(BOXES)])


def draw_by(choose: Callable[[ReviewPage, str], None] | None) -> Callable[[ReviewPage, Any], None]:
    """A task of drawing."""
    return lambda review_page, truth: draw_in_review(review_page, truth, choose)


TASKS = (
    Task(
        "one class, already chosen",
        ONE,
        draw_by(None),
        shapes_cvat(None),
        9,
    ),
    Task(
        "nine classes, another each time",
        NINE,
        draw_by(digit_in_review),
        shapes_cvat(digit_cvat),
        9,
    ),
    Task("600 classes, another each time", ALL, draw_by(type_in_review), shapes_cvat(list_cvat)),
    Task("a suggestion's corner is moved", ONE, mend_in_review, mend_cvat, 9),
    Task(
        f"video, key frames every {STEP}",
        travel(),
        track_in_review,
        track_cvat(True),
        9,
        {"key_frames": STEP},
    ),
)


def make_set(root: Path, task: Task) -> Path:
    """A set of pictures of the task; suggestions lack 20 pixels of what is to be drawn."""
    rng = np.random.default_rng(0)
    mended = task.review is mend_in_review
    boxes = []
    (root / "images" / "clip").mkdir(parents=True)
    names = [f"clip/{n}.jpg" for n in range(max(len(task.truth), 2))]
    for number, name in enumerate(names):
        noise = rng.integers(90, 110, (SIZE[1], SIZE[0], 3), np.uint8)
        (root / "images" / name).write_bytes(simplejpeg.encode_jpeg(noise, 90))
        suggested = task.truth[0] if mended else ()
        corners = [(x0, y0, x1 - x0 - 20, y1 - y0 - 20) for (x0, y0, x1, y1), _ in suggested]
        # a set holds only images with a suggestion; such a one is deleted, uncounted, at once
        boxes += [
            {"image_id": number, "category_id": 1, "bbox": b} for b in corners or [(0, 0, 9, 9)]
        ]
    content = {
        "images": [{"id": number, "file_name": name} for number, name in enumerate(names)],
        "categories": [{"id": n + 1, "name": name_class(n)} for n in range(task.classes)],
        "annotations": [{"id": n, **box} for n, box in enumerate(boxes)],
    }
    (root / "boxes.json").write_text(json.dumps(content))
    sample_boxes(root / "boxes.json", root / "images", root / "set", lambda done: None)
    manifest = json.loads((root / "set" / "set.json").read_text())
    review = {"stages": {"boxes": 1}, **task.plan}
    (root / "set" / "set.json").write_text(json.dumps({**manifest, "review": review}))
    return root / "set"


def measure_in_review(task: Task, page: Page) -> tuple[Hands, list[float], float]:
    """The hands after the task, the seconds of waiting, and the least IoU with the truth."""
    with tempfile.TemporaryDirectory() as folder:
        root = make_set(Path(folder), task)
        command = [sys.executable, "-m", "steadyeye", "review", str(root), "--port", "0"]
        server = subprocess.Popen(
            [*command, "--reviewer", "ann"], stdout=subprocess.PIPE, text=True, cwd=folder
        )
        try:
            link = next(line.split()[-1] for line in server.stdout if line.startswith("ann: "))
            base = re.match(r"http://[^/]+", link)[0]
            page.goto(link)
            page.wait_for_url(f"{base}/")
            page.goto(f"{base}/stages/boxes")
            page.wait_for_selector(READY)
            review_page = ReviewPage(Hands(page))
            task.review(review_page, task.truth)
            page.wait_for_selector("html[data-unsaved='0']")
        finally:
            server.terminate()
            server.wait()
        return review_page.hands, review_page.waits, compare(root, task)


def compare(root: Path, task: Task) -> float:
    """The least IoU of a box that was saved with the one that should have been drawn."""
    folder = read(root)
    order = {row["image"]: int(Path(row["name"]).stem) for row in folder.boxes.to_pylist()}
    with database.connect(database.default_url(root)).reading() as connection:
        outcomes = settle_stage(connection, "boxes")
    saved = {
        order[image]: outcome.answer["boxes"] for image, outcome in outcomes.items() if outcome
    }
    least = 1.0
    for number, (frame, boxes) in enumerate(sorted(saved.items())):
        truth = task.truth[frame if len(task.truth) > 1 else 0]
        labels = [label for _, label in truth]
        if [box["label"] for box in boxes] != labels:
            raise SystemExit(f"{task.name}, picture {number}: {boxes} in place of {truth}")
        least = min(least, *(overlap(b["box"], t) for b, (t, _) in zip(boxes, truth, strict=True)))
    if len(saved) != len(task.truth):
        raise SystemExit(f"{task.name}: {len(saved)} pictures were saved, not {len(task.truth)}")
    return least


def overlap(a: Box, b: Box) -> float:
    """Intersection over union."""
    sides = [max(0.0, min(a[k + 2], b[k + 2]) - max(a[k], b[k])) for k in (0, 1)]
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    shared = sides[0] * sides[1]
    return shared / (sum(areas) - shared)


def describe(hands: Hands, boxes: int) -> str:
    """Seconds a box, and what was done."""
    done = " ".join(f"{hands.counts[name]}{name}" for name in SECONDS)
    return f"{hands.seconds / boxes:5.2f} s a box ({done})"


def main() -> None:
    """Prints two lines a task."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    sys.stdout.write(f"seconds of an operator: {SECONDS}\n")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium")
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        for task in TASKS:
            boxes = sum(map(len, task.truth))
            hands, waits, least = measure_in_review(task, page)
            cvat = Hands()
            task.cvat(cvat, task.truth)
            sys.stdout.write(f"\n{task.name}, {boxes} boxes\n")
            sys.stdout.write(f"  here  {describe(hands, boxes)}; to the next picture ")
            sys.stdout.write(f"{1000 * np.median(waits):.0f} ms; least IoU {least:.3f}\n")
            sys.stdout.write(f"  CVAT  {describe(cvat, boxes)}\n")
        blind = Hands()
        track_cvat(False)(blind, travel())
        sys.stdout.write(f"  CVAT, nobody looks between key frames  {describe(blind, 63)}\n")
        browser.close()


if __name__ == "__main__":
    main()
