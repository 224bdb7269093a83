"""What run.json says of a training, and whether a folder holds that very one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.core.provenance import provenance
from steadyeye.core.storage.files import encode
from steadyeye.predictions.json_record import read_record, write_record
from steadyeye.training.augmentation import Augmentation
from steadyeye.training.engine import MOMENTUM, first
from steadyeye.training.hyperparameters import Course
from steadyeye.training.job import Tuning
from steadyeye.training.protocol import TrainingTask
from steadyeye.training.recipes import TrainingRecipe
from steadyeye.training.selection import Data

DAMAGED = (
    "restore it from a copy, or choose another --out; weights and checkpoints stay as they are"
)


def record(
    job: Tuning,
    recipe: TrainingRecipe,
    course: Course,
    data: Data,
    augmentation: Augmentation | None,
    task: TrainingTask,
) -> dict[str, Any]:
    """All that it takes to repeat a training, as plain values."""
    about = task.record()
    return {
        "kind": "finetune",
        "job": job.record(),
        "base": about["base"],
        "recipe": {
            "from": recipe.source,
            **course.record(),
            "batch normalisation": f"momentum {MOMENTUM} at least",
        },
        "data": data.record(),
        "augment": augmentation.record() if augmentation is not None else None,
        "task": {key: value for key, value in about.items() if key != "base"},
        "provenance": provenance(),
    }


def write(out: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """Writes run.json and returns it, with what is there of a training that was stopped.

    Raises `UsageError` where the folder holds another training, or something else.
    """
    path, found = out / "run.json", dict(content)
    if path.is_file():
        before = read_record(path, DAMAGED)
        _check_same(out, before, json.loads(encode(content)))
        if before["provenance"] != content["provenance"]:
            # the first steps were taken by what is on record; both are told
            found |= {"provenance": before["provenance"], "continued_with": provenance()}
        if "search" in before:
            found = {**found, "search": before["search"]}
    elif any(out.glob("*.json")):
        raise UsageError(f"'{out}' holds something else; choose another --out")
    if first():
        write_record(path, found)
    return found


def _check_same(out: Path, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    if before.get("kind") != "finetune":
        raise UsageError(f"'{out}' holds a run of another kind; choose another --out")
    usual = {"job": json.loads(encode(Tuning().record()))}
    for part in ("job", "base", "recipe", "data", "augment", "task"):
        told, one, two = part, before.get(part), after[part]
        if isinstance(one, dict) and isinstance(two, dict):
            # what an earlier version did not record was as it is by default
            one = {**usual.get(part, {}), **one}
            differing = [key for key in two if one.get(key) != two[key]]
            if not differing:
                continue
            told, one, two = f"{part}'s {differing[0]}", one.get(differing[0]), two[differing[0]]
        if one != two:
            raise UsageError(
                f"'{out}' holds another training: its {told} is {_short(one)}, not {_short(two)}; "
                "choose another --out"
            )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:120]}…"
