"""Reviews with labels proposed by steady objects: the saving, through the real queue and audit.

    python benchmarks/proposed_review.py --model SPEC [data]

The ten sequences of DAVIS become videos. `steadyeye run` follows the detector's objects in them,
`propose` writes labels, `sample --labels` draws anchors from the labelled frames, and one simulated
reviewer answers all items and runs `review-audit` until it passes: an anchor's label is right (it
was checked), and neighbours are similar by the rule of `review_hours.py` (IoU 0.3). One row per
number of anchors per video: the items of a review without the shortcut, the answered items, those
accepted in bulk, and the share of accepted ones that is wrong by the rule.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
from review_hours import Rule, likeness, read_thumbnail, similar

from steadyeye.data.annotations import review_set
from steadyeye.review import database
from steadyeye.review.bulk import audit, skip_pairs
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.stages import read_plan
from steadyeye.review.results import verdicts
from steadyeye.review.workflow import decisions, queue

RATE = 24
RULE = Rule(0.3, 4, None)
PLAN = {"stages": {"anchors": 1, "pairs": 1}, "shortcut": True}


def write_video(folder: Path, path: Path) -> None:
    """A sequence of pictures as H.264."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=RATE)
        stream.pix_fmt, stream.options = "yuv420p", {"crf": "15"}
        for number, picture in enumerate(sorted(folder.glob("*.jpg"))):
            image = cv2.imread(str(picture))
            height, width = (side // 2 * 2 for side in image.shape[:2])
            if not number:
                stream.width, stream.height = width, height
            pixels = np.ascontiguousarray(image[:height, :width])
            frame = av.VideoFrame.from_ndarray(pixels, format="bgr24")
            frame.pts, frame.time_base = number, Fraction(1, RATE)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def run(*command: object) -> None:
    """A command of the product, which has to end well."""
    subprocess.run([sys.executable, "-m", "steadyeye", *map(str, command)], check=True)


class Reviewer:
    """A simulated reviewer who answers all items of a set."""

    def __init__(self, root: Path, data: Path, most: float) -> None:
        content = json.loads((root / "set.json").read_text())
        (root / "set.json").write_text(json.dumps({**content, "review": PLAN}))
        self.folder, self.data, self.most = review_set.read(root), data, most
        self.plan = read_plan(self.folder.content)
        self.rules = decisions.read_rules(self.folder)
        self.db = database.connect(database.default_url(root))
        self.keys = map("request-{:08d}".format, itertools.count())
        self.asked: Counter[str] = Counter()
        self.thumbnails: dict[tuple[str, int], Any] = {}
        with self.db.writing() as c:
            reviewers.add_reviewer(c, "reviewer", joint=["joint"])
            queue.add_set_items(c, self.folder, self.plan)
            skip_pairs.advance_all(c, self.plan)

    def is_similar(self, row: Mapping[str, Any]) -> bool:
        """Whether the rule calls a frame and its anchor similar."""
        video, frame = Path(row["video"]).stem, row["frame"]
        return similar(
            likeness(self._read(video, frame - row["offset"]), self._read(video, frame)), RULE
        )

    def _read(self, video: str, frame: int) -> Any:
        if (video, frame) not in self.thumbnails:
            picture = self.data / "davis" / "JPEGImages" / video / f"{frame:05}.jpg"
            self.thumbnails[video, frame] = read_thumbnail(picture)
        return self.thumbnails[video, frame]

    def answer_all(self) -> None:
        """Answers until no item is left."""
        while served := self._serve():
            for served_item in served:
                answer: dict[str, Any] = {
                    "quality": "good",
                    "labels": served_item.payload["labels"],
                }
                if served_item.stage != "anchors":
                    yes = self.is_similar(served_item.payload)
                    answer = {"correct": "yes", "similar": "yes" if yes else "no"}
                    answer |= {} if yes else {"reasons": ["motion"]}
                with self.db.writing() as c:
                    who = reviewers.list_reviewers(c)[0]
                    submission = decisions.Submission(
                        served_item.assignment, served_item.nonce, next(self.keys), answer, 1.0
                    )
                    decisions.decide(c, self.rules, who, submission)
                self.asked[served_item.stage] += 1

    def _serve(self) -> list[Any]:
        with self.db.writing() as c:
            who = reviewers.list_reviewers(c)[0]
            return [
                served_item
                for stage in self.plan.votes
                for served_item in queue.serve_items(c, self.plan, who, stage)
            ]

    def finish(self) -> str:
        """Answers and audits to the end; what the last audit said."""
        while True:
            self.answer_all()
            with self.db.writing() as c:
                message = audit.run_audit(c, self.plan, self.most, 0)
            if "passed" in message or "everything is decided" in message:
                return message

    def row(self, anchors: int, end: str) -> str:
        """A row of the table."""
        rows = [row for row in self.folder.frames.to_pylist() if not row["duplicate_of"]]
        with self.db.reading() as c:
            judged = verdicts.judge_frames(c, self.folder, self.plan)
        accepted = [row for row in rows if judged[row["id"]].accepted]
        bulk = sum(judged[row["id"]].reason == verdicts.IN_BULK for row in accepted)
        wrong = sum(not (row["offset"] == 0 or self.is_similar(row)) for row in accepted)
        total = self.asked.total()
        frames = len({(row["video"], row["frame"]) for row in accepted})
        questions = f"{self.asked['anchors']:,} + {total - self.asked['anchors']:,}"
        return (
            f"| {anchors} | {len(rows):,} | {questions} | {len(rows) / total:.1f}× | {bulk:,} | "
            f"{wrong} of {len(accepted):,} | {frames:,} | {end} |"
        )


def main() -> None:
    """Reads the options and prints the table."""
    root = Path(__file__).resolve().parents[1]
    default = os.environ.get("STEADYEYE_TEST_DATA", root.parent / "shared" / "data")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path, default=Path(default))
    parser.add_argument("--model", required=True)
    parser.add_argument("--anchors", type=int, nargs="+", default=[1, 5, 15, 30])
    parser.add_argument("--most", type=float, default=0.01)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "videos").mkdir()
        for sequence in sorted((options.data / "davis" / "JPEGImages").iterdir()):
            write_video(sequence, work / "videos" / f"{sequence.name}.mp4")
        videos = f"every_frame(path='{work / 'videos'}')"
        run("run", "--model", options.model, "--data", videos, "--out", work / "run", "--quiet")
        run("propose", work / "run", "--out", work / "proposed.json")
        print(
            "| anchors a video | pairs and anchors | asked: anchors + pairs | fewer | in bulk | "
            "wrong, of accepted | frames | last audit |"
        )
        print("|--:|--:|--:|--:|--:|--:|--:|---|")
        for anchors in options.anchors:
            out = work / f"set-{anchors}"
            labels = ("--labels", work / "proposed.json", "--anchors", anchors)
            run("sample", work / "videos", *labels, "--out", out, "--quiet")
            reviewer = Reviewer(out, options.data, options.most)
            end = reviewer.finish()
            print(reviewer.row(anchors, end), flush=True)


if __name__ == "__main__":
    main()
