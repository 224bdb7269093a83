"""A study: which sets may be asked about, in which order, and when it is enough."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.seeds import fingerprint
from steadyeye.metrics.label_studies.answered_sets import AnsweredSets, find_sets
from steadyeye.metrics.label_studies.premise_checks import bound_clean_checks, count_checks_needed
from steadyeye.metrics.label_studies.question import Question

CONSTANT_CLASS, SCENE_CLASS = "constant-class", "scene-class"
PREMISES = (CONSTANT_CLASS, SCENE_CLASS)
STATED, CHECKED = "stated", "checked on a sample"
"""Why a premise is believed; or how labels that come with the data bear it out."""
STRATA = ("", "confidence", "class")
MOST_STRATA = 5


@dataclass(frozen=True)
class Premise:
    """The premise that every set, or every scene, shows one class on all its frames.

    `name`: one of `PREMISES`. `reason`: "stated", or how it was checked. `checks`: number of exempt
    sets that people label to check it, or all if there are fewer; 0: it is not checked.
    """

    name: str
    reason: str = STATED
    checks: int = 0

    def __str__(self) -> str:
        """The premise with its reason: `premise constant-class, stated`."""
        return f"premise {self.name}, {self.reason}"

    @property
    def of_scenes(self) -> bool:
        """Whether all sets of a scene show the same class, so that one label does for all."""
        return self.name == SCENE_CLASS


@dataclass(frozen=True)
class StopRule:
    """When labels are enough, besides a decision of the question.

    `budget`: most labels, None: no limit. `target`: the half-width of the interval, 0…1.
    """

    budget: int | None = None
    target: float | None = None


@dataclass(frozen=True, eq=False)
class LabelStudy:
    """The plan of a study, fixed before the first label.

    `question`: with its k. `sets`: the ids of all N sets. `candidates`: the ids to label, in this
    order: uniform without replacement by the seed, or the scenes with the most sets first.
    `checks`: the ids that check the premise, in the order of the seed, of `exempt` sets that need
    no label if it holds. `answers`: candidate, set of a scene, or check → the model's classes.
    `scenes`: with one label per scene, candidate → the sets of its scene that may count; otherwise
    empty. `strata`: candidate → its stratum, if the order is proportional to strata; otherwise
    empty. `videos`: set → its video. `fingerprint`: changes with the sets and the predictions.
    `samples`: the fingerprint of the data, and that of the images' content, '' if not computed.
    `earlier`: sets with an earlier label → the model for which it was collected.
    """

    question: Question
    sets: tuple[str, ...]
    candidates: tuple[str, ...]
    answers: Mapping[str, tuple[str, ...]]
    videos: Mapping[str, str]
    premise: Premise | None = None
    checks: tuple[str, ...] = ()
    exempt: int = 0
    scenes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    strata: Mapping[str, str] = field(default_factory=dict)
    strata_by: str = ""
    stop: StopRule = StopRule()
    seed: int = 0
    model: str = ""
    data: str = ""
    fingerprint: str = ""
    samples: tuple[str, str] = ("", "")
    notes: tuple[str, ...] = ()
    earlier: Mapping[str, str] = field(default_factory=dict)

    @property
    def countable(self) -> int:
        """How many sets can count, C; the others contribute nothing whatever is in them."""
        return sum(map(len, self.scenes.values())) if self.scenes else len(self.candidates)

    @cached_property
    def threshold(self) -> int:
        """The number of sets at which the share is reached, or exceeded."""
        return self.question.count_needed(len(self.sets))

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Candidates and checks in the order in which people are asked, each in its own.

        The checks are mixed at random among as many candidates, or as the budget leaves for them.
        """
        if not self.checks:
            return self.candidates
        number = self._count_mixed()
        mixed = {*self.candidates[:number], *self.checks}
        places = sorted(mixed, key=lambda name: fingerprint("check order", str(self.seed), name))
        candidates, checks = iter(self.candidates), iter(self.checks)
        known = frozenset(self.checks)
        first = [next(checks if name in known else candidates) for name in places]
        return tuple(chain(first, candidates))

    def _count_mixed(self) -> int:
        """Among how many candidates the checks are mixed."""
        checks, budget = len(self.checks), self.stop.budget
        if budget is None:
            return checks
        may_end_earlier = self.question.share is not None or self.stop.target is not None
        return min(checks, budget - checks) if may_end_earlier else budget - checks


def plan_study(
    predictions: Predictions,
    question: Question,
    premise: Premise | None = None,
    *,
    seed: int = 0,
    strata: str = "",
    stop: StopRule | None = None,
) -> LabelStudy:
    """The study of a question on sealed predictions; nothing of it depends on any label.

    The order depends on the seed and the ids alone, so that the sets two models share come in the
    same order for both. `strata`: "confidence" (five of equal size) or "class" (the model's four
    most frequent classes and the rest): the order is then proportional to them. Raises `UsageError`
    where the question does not apply, or rests on a premise that nobody stated or checked.
    """
    sets = find_sets(predictions, question)
    if not len(sets.ids):
        raise UsageError(f"{question.name}: {predictions.data} has no set with a prediction")
    question = replace(question, k=sets.k)
    if needs_premise(question):
        premise = premise or check_labels(predictions, question)
    _check(question, premise, strata)
    stop = stop or StopRule()
    scenes = _scenes(sets, seed) if premise and premise.of_scenes else {}
    places = np.flatnonzero(sets.candidates)
    names = _strata(sets, strata, places)
    candidates = tuple(scenes) or _order(sets.ids[places], names, seed)
    checks = _choose_checks(sets, premise, stop, seed)
    return LabelStudy(
        question=question,
        sets=tuple(sets.ids.tolist()),
        candidates=candidates,
        answers=_list_answers(sets, checks),
        videos=dict(zip(sets.ids.tolist(), sets.videos.tolist(), strict=True)),
        premise=premise,
        checks=checks,
        exempt=int(sets.exempt.sum()),
        scenes=scenes,
        strata=dict(zip(sets.ids[places].tolist(), names, strict=True)) if strata else {},
        strata_by=strata,
        stop=stop,
        seed=seed,
        model=predictions.model,
        data=predictions.data,
        fingerprint=mark_answers(predictions, sets),
        samples=(predictions.fingerprint, predictions.content),
        notes=sets.notes,
    )


def _list_answers(sets: AnsweredSets, checks: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The model's classes on the candidates and the checks."""
    served = sets.candidates | np.isin(sets.ids, list(checks))
    return {str(sets.ids[place]): sets.answers[place] for place in np.flatnonzero(served).tolist()}


def _choose_checks(
    sets: AnsweredSets, premise: Premise | None, stop: StopRule, seed: int
) -> tuple[str, ...]:
    """The exempt sets that are asked about to check the premise, in the order of the seed.

    Raises `UsageError` where they leave no label of the budget, or are too few for the target.
    """
    if premise is None or not premise.checks:
        return ()
    checks = tuple(rank_sets(sets.ids[sets.exempt].tolist(), seed)[: premise.checks])
    if stop.budget is not None and stop.budget <= len(checks):
        raise UsageError(
            f"{number_of(len(checks), 'check')} leave no label of a budget of {stop.budget}; give "
            "a larger --budget, or a smaller --check-premise"
        )
    if stop.target is not None:
        _check_width(len(checks), int(sets.exempt.sum()), len(sets.ids), stop.target)
    return checks


def _check_width(checks: int, exempt: int, total: int, target: float) -> None:
    """Raises `UsageError` if no interval after the checks is narrow enough."""
    # the interval is two half-widths wide, and the exempt sets are at its upper end alone
    if bound_clean_checks(checks, exempt) >= 2 * target * total:
        enough = count_checks_needed(target * total, exempt)
        raise UsageError(
            f"{number_of(checks, 'check')} cannot show ±{100 * target:g} percentage points; give "
            f"--check-premise {enough}, or a larger --target"
        )


def match_samples(samples: tuple[str, str], predictions: Predictions) -> bool:
    """Whether predictions are of the data with these fingerprints, as `LabelStudy` has them."""
    source, images = samples
    content = predictions.content
    # where nobody looked at the images, or another kind of mark was taken, nothing can be compared
    comparable = images.partition(" ")[0] == content.partition(" ")[0]
    return source == predictions.fingerprint and (images == content or not comparable)


def needs_premise(question: Question) -> bool:
    """Whether sets are exempt from labels by the premise of one class per set."""
    return question.metric in {"pm_k", "drop"} and question.k != 0


def parse_premise(name: str, checks: int = 0) -> Premise:
    """The premise that a user states, or that `checks` sets check.

    Raises `UsageError` for another name, and for checks of a premise that labels of single sets
    cannot check.
    """
    if name not in PREMISES:
        raise UsageError(f"no premise named '{name}'; give {' or '.join(PREMISES)}")
    if checks and name != CONSTANT_CLASS:
        raise UsageError(f"--check-premise checks {CONSTANT_CLASS}, not {name}; leave one out")
    return Premise(name, CHECKED if checks else STATED, checks)


def check_labels(predictions: Predictions, question: Question) -> Premise | None:
    """The premise, checked by the labels of the data; None without labels.

    Raises `UsageError` if sets among them have several or changing classes.
    """
    if "truth" not in predictions.columns or "offset" not in predictions.tags:
        return None
    inside = predictions.has_label
    if question.k is not None:
        inside = inside & (np.abs(predictions.tags["offset"]) <= question.k)
    rows = np.flatnonzero(inside)
    _, group = predictions.distinct_groups
    order = rows[np.argsort(group[rows], kind="stable")]
    before, after = order[:-1], order[1:]
    changes = (group[before] == group[after]) & (
        predictions.truth[before] != predictions.truth[after]
    ).any(axis=1)
    broken = set(group[before[changes]].tolist())
    broken |= set(group[rows[predictions.truth[rows].sum(axis=1) > 1]].tolist())
    total = len(np.unique(group[rows]))
    counted = number_of(total, "labelled set")
    if broken:
        first = predictions.distinct_groups[0][min(broken)]
        raise UsageError(
            f"{len(broken):,} of {counted} of {predictions.data} show several classes or change "
            f"theirs, first '{first}': {question.name} cannot be estimated from the labels of a "
            "few sets; label every frame"
        )
    return Premise(CONSTANT_CLASS, f"checked: {counted}, each of one class") if total else None


def _check(question: Question, premise: Premise | None, strata: str) -> None:
    if strata not in STRATA:
        raise UsageError(f"no strata named '{strata}'; give confidence or class, or leave it out")
    if strata and question.share is not None:
        raise UsageError(
            f"'{question}' is decided from a uniform order; leave --strata out, or ask for an "
            f"interval, '{question.name}', alone"
        )
    if premise and premise.checks and (strata or not needs_premise(question)):
        option = "--strata" if strata else question.name
        raise UsageError(f"--check-premise does not go with {option}; leave one out")
    if premise and premise.of_scenes and (strata or question.of_images):
        option = "--strata" if strata else question.metric
        raise UsageError(
            f"{option} does not go with one label a scene; give constant-class or none"
        )
    if needs_premise(question) and premise is None:
        raise UsageError(
            f"{question.name} from a few labels assumes that every set shows one class on all "
            "its frames; have that checked with `steadyeye label --check-premise 100`, or look "
            "at some and state it with --premise constant-class (or scene-class, where all sets "
            "of a scene show the same one)"
        )


def _order(ids: NDArray[np.str_], strata: list[str], seed: int) -> tuple[str, ...]:
    """The ids in the order of the seed, which is uniform; within strata proportional to them."""
    ranked = rank_sets(ids.tolist(), seed)
    if not any(strata):
        return tuple(ranked)
    stratum = dict(zip(ids.tolist(), strata, strict=True))
    sizes: dict[str, int] = {}
    rank: dict[str, int] = {}
    for name in ranked:
        rank[name] = sizes.get(stratum[name], 0)
        sizes[stratum[name]] = rank[name] + 1
    # the j-th of a stratum stands where (j + ½) of its sets do
    return tuple(sorted(ranked, key=lambda name: (rank[name] + 0.5) / sizes[stratum[name]]))


def rank_sets(names: Iterable[str], seed: int) -> list[str]:
    """The sets in the order of a seed, which is uniform and the same for every model."""
    return sorted(names, key=lambda name: _key(seed, name))


def _key(seed: int, name: str) -> str:
    return fingerprint("label order", str(seed), name)


def _scenes(sets: AnsweredSets, seed: int) -> dict[str, tuple[str, ...]]:
    """The first set of each scene → the sets of the scene that may count, most sets first."""
    members: dict[str, list[str]] = {}
    for place in np.flatnonzero(sets.candidates).tolist():
        members.setdefault(str(sets.scenes[place]), []).append(str(sets.ids[place]))
    ranked = sorted(members.values(), key=lambda ids: (-len(ids), _key(seed, ids[0])))
    return {ids[len(ids) // 2]: tuple(ids) for ids in ranked}


def _strata(sets: AnsweredSets, by: str, places: NDArray[np.intp]) -> list[str]:
    """The stratum of each candidate, '' without strata."""
    if not by or not len(places):
        return [""] * len(places)
    if by == "confidence":
        rank = np.argsort(np.argsort(-sets.confidence[places], kind="stable"), kind="stable")
        return [f"confidence {1 + r * MOST_STRATA // len(places)}" for r in rank.tolist()]
    names = [", ".join(sets.answers[place]) for place in places.tolist()]
    classes, counts = np.unique(names, return_counts=True)
    frequent = set(classes[np.argsort(-counts, kind="stable")][: MOST_STRATA - 1].tolist())
    return [name if name in frequent else "other classes" for name in names]


def mark_answers(predictions: Predictions, sets: AnsweredSets) -> str:
    """A fingerprint that changes with the data, the sets and the predictions."""
    answers = ("\x01".join(names) for names in sets.answers)
    rows = (f"{id_}\x00{names}" for id_, names in zip(sets.ids.tolist(), answers, strict=True))
    may_count = "".join("01"[bool(candidate)] for candidate in sets.candidates.tolist())
    return fingerprint(predictions.fingerprint, predictions.content, may_count, *rows)
