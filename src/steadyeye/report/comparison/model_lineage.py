"""Models that were trained, beside those they were trained from, on the same samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadyeye.core.errors import list_texts
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.result_lookup import alike
from steadyeye.core.types import Evaluated


@dataclass(frozen=True, eq=False)
class Step:
    """A model before and after: trained further, or trained on augmented images instead of plain.

    `augmented`: whether it is the latter, both being trained from the same model on the same data.
    """

    before: Evaluated
    after: Evaluated
    augmented: bool = False

    @property
    def names(self) -> tuple[str, str]:
        """The names of both models."""
        return self.before.predictions.model, self.after.predictions.model


def steps(evaluated: Sequence[Evaluated]) -> list[Step]:
    """Every model beside that which it was trained from, then with augmentation beside without.

    Told by fingerprints, on the very same samples; models alone are in none.
    """
    found = []
    for after in evaluated:
        for before in alike([after, *evaluated])[1:]:
            if before.predictions.model_mark and before.predictions.model_mark == _base(after):
                found.append(Step(before, after))
                break
    for after in evaluated:
        for before in alike([after, *evaluated])[1:]:
            if _plain_twin(before, after):
                found.append(Step(before, after, augmented=True))
                break
    return found


def augmentation(predictions: Predictions) -> tuple[str, ...]:
    """The operators that the images were augmented with that a model was trained on."""
    listed: Sequence[Mapping[str, Any]] = predictions.recipe.get("augmentation") or ()
    return tuple(each["operator"] for each in listed if each["operator"] != "plain")


def from_scratch(predictions: Predictions) -> bool:
    """Whether all weights of a trained model were drawn anew, as its training has on record."""
    return bool(predictions.recipe.get("from scratch"))


def caveats(step: Step) -> tuple[str, ...]:
    """What must be known to read the differences of a step."""
    return tuple(filter(None, (_answers(step), _overlap(step), _one_training(step))))


def _base(one: Evaluated) -> str:
    return str((one.predictions.recipe.get("base") or {}).get("fingerprint", ""))


def _plain_twin(before: Evaluated, after: Evaluated) -> bool:
    """Whether two models differ in that the latter's images were augmented."""
    if not _base(after) or _base(before) != _base(after):
        return False
    if from_scratch(before.predictions) != from_scratch(after.predictions):
        return False
    data = [each.predictions.recipe.get("trained on", {}) for each in (before, after)]
    same = data[0].get("fingerprint") == data[1].get("fingerprint")
    return same and not augmentation(before.predictions) and bool(augmentation(after.predictions))


def _answers(step: Step) -> str:
    """In which classes each of the models answers."""
    before, after = (each.predictions for each in (step.before, step.after))
    if before.model_classes == after.model_classes:
        return ""
    if before.model_classes == before.classes or before.model_to_data_class is None:
        return ""
    standing = int((before.model_to_data_class >= 0).sum())
    reached = len(np.unique(before.model_to_data_class[before.model_to_data_class >= 0]))
    none = len(before.classes) - reached
    lost = f", none of them to {none} of the data's classes" if none else ""
    chosen = (
        f"a prediction of one of the other {len(before.others):,} is wrong"
        if len(before.others)
        else "it chooses among these by its class map"
    )
    own = "the classes of the data" if after.model_classes == after.classes else "its own classes"
    return (
        f"{before.model} predicts {number_of(len(before.model_classes), 'class')} of its own. "
        f"{standing:,} of them map to the {len(before.classes):,} classes of the data{lost}; "
        f"{chosen}. {after.model} predicts {own}. Part of a gain may come from the different "
        "classes."
    )


def _overlap(step: Step) -> str:
    """Whether what the models are measured on was trained on."""
    after = step.after.predictions
    known: Mapping[str, Any] = after.recipe.get("trained on", {})
    videos: Mapping[str, Any] | None = known.get("videos")
    if videos is None:
        return (
            f"The videos in the training data of {after.model} are not recorded, so an overlap "
            "with this data cannot be checked."
            if known
            else ""
        )
    names, number = after.clusters
    there = [i for i, name in enumerate(names.tolist()) if name in videos]
    if not there:
        return ""
    frames, first = np.unique(_frames(after), return_index=True)
    inside = int(_find_trained(after, videos, number)[first].sum())
    told_frames = (
        f"{inside:,} of {number_of(len(frames), 'frame')} are between the first and the last frame "
        "trained on"
        if inside
        else "none of these frames was trained on"
    )
    told = list_texts(names[there].tolist())
    return (
        f"The training data of {after.model} include {len(there):,} of the "
        f"{number_of(len(names), 'video')} ({told}); {told_frames}. "
        "A gain on them says little about other footage."
    )


def _frames(after: Predictions) -> np.ndarray[Any, np.dtype[np.str_]]:
    """(n,) what names the frame of each row, which several sets or levels may hold."""
    if "frame" not in after.tags:
        return np.asarray(after.tags.get("image", after.ids), dtype=np.str_)
    pairs = zip(after.clusters[0][after.clusters[1]].tolist(), after.tags["frame"], strict=True)
    return np.array([f"{video}/{frame}" for video, frame in pairs], dtype=np.str_)


def _find_trained(
    after: Predictions, videos: Mapping[str, Any], number: np.ndarray[Any, np.dtype[np.intp]]
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """(n,) frames from the first to the last of their video that was trained on."""
    if "frame" not in after.tags:
        return np.isin(after.clusters[0][number], list(videos))
    frame = np.asarray(after.tags["frame"], dtype=np.int64)
    spans = [videos.get(name) or (1, 0) for name in after.clusters[0].tolist()]
    first, last = np.array(spans, dtype=np.int64).reshape(-1, 2)[number].T
    return np.asarray((frame >= first) & (frame <= last), dtype=np.bool_)


def _one_training(step: Step) -> str:
    return (
        f"The intervals are about {_others(step)}. They do not include the variation between "
        "trainings with other seeds."
    )


def _others(step: Step) -> str:
    predictions = step.after.predictions
    videos = len(predictions.clusters[0])
    if videos == 1:
        return "other frames of this one video"
    return f"other {'videos' if videos < len(predictions) else 'images'} of this kind"
