"""Data as Python objects, made from JSON so that any part can have any type.

Also runs of a detector on footage without labels, whose objects are followed.
"""

import json
from functools import partial

import numpy as np
from fuzzing import FEW, Parser
from parsers_runs import FILES, check_numbers
from parsers_text import write
from PIL import Image as Pillow

import steadyeye as se
from steadyeye.core.errors import UsageError
from steadyeye.core.storage.text_files import read_json
from steadyeye.data.python_data import read_items
from steadyeye.metrics.sequences.scenes import can_follow
from steadyeye.report import build

ITEMS = "items.json"
IMAGE = [[[0.0, 0.5, 1.0], [0.25, 0.5, 0.75]], [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]]
DATA = {
    "length": 5,
    "classes": ["cat", "dog"],
    "items": [
        [IMAGE, "cat"],
        {"image": IMAGE, "label": ["cat", "dog"]},
        [IMAGE, [0.1, 0.9], {"note": 1}],
        [IMAGE, 1],
        ["a.png", None],
    ],
}
RATES = ("blink_rate", "flicker_rate", "class_change_rate", "box_jitter", "confidence_swing")


class Data:
    """A dataset that says of itself what a file says; paths are of the folder."""

    def __init__(self, content, folder):
        self.content, self.folder = content, folder
        self.classes = content.get("classes")
        self.metadata = {}
        if isinstance(names := content.get("named"), dict):
            # JSON has no numbers as keys
            self.metadata["index2label"] = {
                int(k) if k.isdecimal() else k: v for k, v in names.items()
            }

    def __len__(self):
        return self.content["length"]

    def __getitem__(self, index):
        item = self.content["items"][index]
        if isinstance(item, list) and item[0] == "a.png":
            return [Pillow.open(self.folder / "a.png"), *item[1:]]
        return item


def build_items(content, folder):
    write({ITEMS: json.dumps(content), "a.png": ""}, folder)


def read_data(folder):
    content = read_json(folder / ITEMS, "items")
    try:
        if not isinstance(content, dict):
            read_items(content)
            return
        source = read_items(Data(content, folder))
        assert all(source[i].image().dtype == np.uint8 for i in range(len(source)))
    except UsageError as error:
        raise UsageError(f"'{ITEMS}': {error}") from error


def build_objects(folder):
    """Footage of a square that goes to the right, is gone for a frame and changes its class."""
    for number in range(10):
        image = np.full((24, 48, 3), 20, np.uint8)
        image[6:16, 3 + 2 * number : 13 + 2 * number] = 20 if number == 4 else 200 + 4 * number
        path = folder / "clip" / f"{number:03d}.png"
        path.parent.mkdir(exist_ok=True)
        Pillow.fromarray(image).save(path)
    names = folder / "classes.json"
    names.write_text('["dim", "bright"]')
    model = f"callable_detector(path='object_toys:bright', classes='{names}')"
    data = f"every_frame(path='{folder / 'clip'}', fps=10, cuts='none')"
    run = se.evaluate(model, data, out=folder / "run", cache="off")
    write({"numbers.json": json.dumps(read_rates(run))}, folder)


def read_rates(run):
    assert can_follow(run.predictions)
    return {name: str(getattr(run, name)()) for name in RATES}


def read_objects(folder):
    check_numbers(folder, read_rates(se.open_run(folder / "run")))


def report_objects(folder):
    build.write([folder / "run"], [folder / "report.html", folder / "report.json"])
    assert "blink" in (folder / "report.json").read_text()


BARE = [[IMAGE, "cat"], [IMAGE, ["cat", "dog"]], {"img": IMAGE}]
NAMED = {
    "length": 3,
    "named": {"0": "cat", "1": "dog"},
    "items": [[IMAGE, 0], [IMAGE, [0.2, 0.8]], [IMAGE, -1]],
}
PARSERS = [
    Parser("python-data", partial(build_items, DATA), read_data, {ITEMS: "json"}),
    Parser("python-data-as-a-list", partial(build_items, BARE), read_data, {ITEMS: "json"}),
    Parser("python-data-with-metadata", partial(build_items, NAMED), read_data, {ITEMS: "json"}),
    Parser("objects-read", build_objects, read_objects, FILES),
    Parser("objects-reported", build_objects, report_objects, FILES, cases=FEW),
]
