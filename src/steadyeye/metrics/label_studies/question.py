"""The question of a study: a share of sets, with or without a required value."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.requirement import SIGNS, advise_number, parse_requirement
from steadyeye.core.spec import Spec, parse

OF_SETS = ("pm_k", "drop", "accuracy")
"""Metrics of pm-sets that labels of a few sets can tell."""
OF_IMAGES = ("false_positive_rate", "image_error_rate")
"""Shares of the images of a detector, above a score threshold."""
METRICS = (*OF_SETS, *OF_IMAGES)
WHY_NOT = {
    "map": "it ranks all detections of all images, so no image contributes a part of it that "
    "could be drawn and labelled alone",
    "flip_rate": "it needs no labels",
    "self_consistency": "it needs no labels",
}
WHY_NOT |= dict.fromkeys(("map_drop", "map_without_ood", "mar", "pm_k_map"), WHY_NOT["map"])


@dataclass(frozen=True)
class Question:
    """A share of sets, and its requirement.

    `metric`: one of `METRICS`. `k`: native frames, None: the largest in the data. `score`: of a
    detector, the threshold above which its boxes count. `relation`: `>=`, `>`, `<=` or `<`, '' if
    only an interval is required. `share`: 0…1, exact as it is written.
    """

    metric: str
    k: int | None = None
    score: float | None = None
    relation: str = ""
    share: Fraction | None = None

    def __str__(self) -> str:
        """The canonical text, `pm_k(k=10) >= 70%`: `parse_question` reads it as the same."""
        if self.share is None:
            return self.name
        percentage = self.share * 100
        number = f"{float(percentage):.10g}"
        return f"{self.name} {self.relation} {number}%"

    @property
    def name(self) -> str:
        """The metric with its parameters, `pm_k(k=10)`."""
        parameters = {"k": self.k, "score": self.score}
        return str(Spec(self.metric, {k: v for k, v in parameters.items() if v is not None}))

    @property
    def of_images(self) -> bool:
        """Whether it is about single images of a detector, rather than about sets of frames."""
        return self.metric in OF_IMAGES

    @property
    def wants_many(self) -> bool:
        """Whether many sets are to count, as for `>=`, rather than few."""
        return self.relation.startswith(">")

    def count_needed(self, sets: int) -> int:
        """From how many sets on it is so that the share is reached, or is too much."""
        assert self.share is not None, "a question without a number has nothing to reach"
        exact = self.share * sets
        # > and <=: the number itself is not enough, or not yet too much
        return ceil(exact) if self.relation in {">=", "<"} else floor(exact) + 1


def parse_question(text: str) -> Question:
    """The question that `text` writes down: `pm_k(k=10)`, `drop(k=5) <= 5%`.

    Raises `UsageError` for a metric that labels of a few sets cannot tell, with the reason.
    """
    if not any(sign in text for sign in SIGNS.values()):
        return _question(parse(text), "", None)
    required = parse_requirement(text)
    share = required.exact
    if not 0 <= share <= 1:
        advice = advise_number(float(share), required.text.endswith("%"), 0, 1)
        raise UsageError(f"'{text.strip()}': shares are in 0…1; {advice}")
    return _question(required.spec, required.sign, share)


def _question(spec: Spec, relation: str, share: Fraction | None) -> Question:
    if spec.name in WHY_NOT:
        raise UsageError(f"{spec.name} cannot be estimated from few labels: {WHY_NOT[spec.name]}")
    if spec.name not in METRICS:
        raise unknown("metric of few labels", spec.name, METRICS)
    name = "score" if spec.name in OF_IMAGES else "" if spec.name == "accuracy" else "k"
    for key in spec.kwargs:
        if key != name:
            raise UsageError(f"{spec}: {spec.name} takes {name or 'nothing'}, not {key}")
    value = spec.kwargs.get(name)
    if spec.name in OF_IMAGES:
        score = 0.5 if value is None else value
        if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score < 1:
            raise UsageError(f"{spec}: score is a threshold in 0…1, such as 0.5")
        return Question(spec.name, None, float(score), relation, share)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise UsageError(f"{spec}: k is a number of frames, 0 or more")
    return Question(spec.name, value, None, relation, share)
