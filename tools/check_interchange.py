"""Checks exports for Label Studio and CVAT with these tools' own packages.

::

    python tools/check_interchange.py                 # creates their environments, and checks
    python check_interchange.py label_studio FOLDER   # an export, with the installed package

The first form needs the packages of the tests and a package index. It reviews small sets of frames,
boxes and videos, exports the decisions, and checks the export in an environment for each of
`TOOLS`; the exit code is 1 if one refuses anything. The second form imports nothing of steadyeye.

Label Studio's package checks configs, tasks, predictions and annotations. CVAT's has no reader of
its XML: its models check the labels, every tag and every box as CVAT's server would store them, and
its attribute validators check every answer. The XML with its pictures is read by datumaro, which
converts CVAT's format to others.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

TOOLS = {
    "label_studio": "label-studio-sdk==2.1.2",
    "cvat": "cvat-sdk==2.80.0",
    "datumaro": "datumaro==1.13.12",
}
ROOT = Path(__file__).resolve().parent.parent


def check_label_studio(folder: Path) -> Mapping[str, int]:
    """The number of entries that label-studio-sdk accepts, by kind; raises for a refused one."""
    from label_studio_sdk.label_interface import LabelInterface

    counts = dict.fromkeys(("configs", "tasks", "predictions", "annotations"), 0)
    for config in sorted(folder.glob("*.xml")):
        interface = LabelInterface(config.read_text(encoding="utf-8"))
        interface.validate()
        counts["configs"] += 1
        tasks = json.loads(config.with_suffix(".tasks.json").read_text(encoding="utf-8"))
        results = json.loads(config.with_suffix(".results.json").read_text(encoding="utf-8"))
        for task in [*tasks, *results]:
            # task data are checked one by one, for a message with the reason
            if not interface.validate_task({"data": task["data"]}):
                raise ValueError(f"{config.name}: the task {task['data']} lacks what is shown")
            for kind in ("predictions", "annotations"):
                for entry in task.get(kind, ()):
                    faults = interface.validate_prediction(entry, return_errors=True)
                    if faults:
                        raise ValueError(f"{config.name}, {task['data']['key']}: {faults}")
                    counts[kind] += 1
            counts["tasks"] += 1
    return counts


def check_cvat(folder: Path) -> Mapping[str, int]:
    """The number of entries that cvat-sdk's models and validators accept, by kind."""
    from cvat_sdk import models
    from cvat_sdk.api_client import Configuration
    from cvat_sdk.api_client.model_utils import validate_and_convert_types

    def take(content: Any, model: Any) -> Any:
        # by the names and enumerations of the API, strictly, as for an answer of the server
        return validate_and_convert_types(
            content, (model,), ["export"], True, True, configuration=Configuration()
        )

    counts = dict.fromkeys(("labels", "tags", "shapes", "answers"), 0)
    for labels in sorted(folder.glob("*/labels.json")):
        content = json.loads(labels.read_text(encoding="utf-8"))
        rows = take(content, [models.PatchedLabelRequest])
        for row in content:
            take(row["type"], models.LabelType)
        counts["labels"] += len(rows)
        files = [labels.parent / "annotations.xml", *labels.parent.glob("results/*.xml")]
        for file in files:
            root = ElementTree.parse(file).getroot()  # noqa: S314 - a file of ours
            data, answers = read_shapes(root, rows)
            stored = take(data, models.LabeledDataRequest)
            counts["tags"] += len(stored.get("tags", ()))
            counts["shapes"] += len(stored.get("shapes", ()))
            counts["answers"] += answers
    return counts


def read_shapes(root: ElementTree.Element, labels: Any) -> tuple[Mapping[str, Any], int]:
    """The tags and boxes of a file in CVAT's API, and the number of checked attributes.

    Raises `ValueError` for a label or an attribute that the task does not have, and for a value
    that its attribute does not allow.
    """
    from cvat_sdk.attributes import attribute_value_validator

    ids = {label.name: number for number, label in enumerate(labels, start=1)}
    specs = {
        label.name: {spec.name: (number, spec) for number, spec in enumerate(label.attributes, 1)}
        for label in labels
    }
    data: dict[str, list[Any]] = {"tags": [], "shapes": []}
    checked = 0
    for image in root.iter("image"):
        for element in image:
            name = element.get("label", "")
            if name not in ids:
                raise ValueError(f"{image.get('name')}: the task has no label '{name}'")
            values = []
            for attribute in element.iter("attribute"):
                number, spec = specs[name][attribute.get("name", "")]
                if not attribute_value_validator(spec)(attribute.text or ""):
                    raise ValueError(f"{image.get('name')}: {spec.name} is '{attribute.text}'")
                values.append({"spec_id": number, "value": attribute.text or ""})
                checked += 1
            row = {"frame": int(image.get("id", "")), "label_id": ids[name], "group": 0}
            row |= {"source": element.get("source"), "attributes": values}
            if element.tag == "tag":
                data["tags"].append(row)
                continue
            points = [float(element.get(key, "")) for key in ("xtl", "ytl", "xbr", "ybr")]
            more = {"points": points, "occluded": False, "z_order": 0, "rotation": 0.0}
            data["shapes"].append({**row, **more, "type": "rectangle", "outside": False})
    return data, checked


def check_datumaro(folder: Path) -> Mapping[str, int]:
    """The number of pictures, tags and boxes that datumaro reads from an export for CVAT.

    Raises `ValueError` if they differ from those in the XML.
    """
    import datumaro

    counts = dict.fromkeys(("image", "tag", "box"), 0)
    for stage in sorted(path.parent for path in folder.glob("*/labels.json")):
        for file in (stage / "annotations.xml", *sorted(stage.glob("results/*.xml"))):
            with tempfile.TemporaryDirectory() as place:
                shutil.copytree(stage / "images", Path(place) / "images")
                shutil.copy(file, Path(place) / "annotations.xml")
                pictures = list(datumaro.Dataset.import_from(place, "cvat"))
                kinds = Counter(
                    annotation.type.name
                    for picture in pictures
                    for annotation in picture.annotations
                )
            root = ElementTree.parse(file).getroot()  # noqa: S314 - a file of ours
            numbers = {name: sum(1 for _ in root.iter(name)) for name in counts}
            if numbers != {"image": len(pictures), "tag": kinds["label"], "box": kinds["bbox"]}:
                raise ValueError(f"{file} holds {numbers}, and datumaro reads {dict(kinds)}")
            counts = {name: counts[name] + numbers[name] for name in counts}
    return counts


CHECKS: Mapping[str, Callable[[Path], Mapping[str, int]]] = {
    "label_studio": check_label_studio,
    "cvat": check_cvat,
    "datumaro": check_datumaro,
}


def export_reviews(out: Path) -> list[Path]:
    """The folders of exports of small reviews of frames, of boxes, and of videos with tracks."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "fixtures")]
    from review_exports import export_everything

    return export_everything(out)


def check_export(tool: str, folder: Path, environment: Path) -> int:
    """The exit code of a check in the tool's environment, which is created if it is missing."""
    python = environment / "bin" / "python"
    if not python.exists():
        commands = [
            [sys.executable, "-m", "venv", environment],
            [python, "-m", "pip", "install", "--quiet", TOOLS[tool]],
        ]
        for command in commands:
            subprocess.run(command, check=True)  # noqa: S603 - all of it is written here
    export = folder / ("label_studio" if tool == "label_studio" else "cvat")
    command = [python, __file__, tool, export]
    return subprocess.run(command, check=False).returncode  # noqa: S603


def main() -> int:
    """0 if every tool accepts every export."""
    if len(sys.argv) == 3:
        tool, folder = sys.argv[1], Path(sys.argv[2])
        sys.stdout.write(f"{tool} {folder.parent.name}: {dict(CHECKS[tool](folder))}\n")
        return 0
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        folders = export_reviews(root / "exports")
        codes = [check_export(tool, folder, root / tool) for tool in TOOLS for folder in folders]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
