"""Blind spots: regions of the data where the reference data are sparse."""

from collections.abc import Iterator, Sequence

import numpy as np

from steadyeye.core.format import interval, number_of, percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Exhibit, Mark, Picture, Section, Table, Topic
from steadyeye.core.types import Evaluated, needs
from steadyeye.explain.embedding.blind_spots import (
    FAR,
    Blindness,
    SpotContents,
    blindness,
    contents,
    examples,
    pair,
)
from steadyeye.explain.embedding.density_ratio import FALSE, LEAST, SHUFFLES
from steadyeye.explain.embedding.regions import WRONG
from steadyeye.explain.mining.candidates import FAINT, mistake_film
from steadyeye.explain.mining.causes import judge_detections
from steadyeye.report.charts.embedding_map import map_figure, name_cause

PACKAGES = ("sklearn",)
EXTRA = "explain"
SHOWN = 8
KINDS = {"detections": "confident detections", "truth": "true boxes", "images": "images"}


@needs("target", "blind_spots")
def blind_spots(evaluated: Sequence[Evaluated]) -> Section | None:
    """Regions where the reference is sparse, and how often the model is wrong there.

    k-NN density ratios of the features of both sets against shuffled labels
    (`steadyeye.explain.embedding.density_ratio`), HDBSCAN clusters of sparse regions, and a map.
    None without embedded regions.
    """
    tables = [model.predictions for model in evaluated if model.predictions.valid.any()]
    if not tables:
        return None
    measured = [(table, blindness(table)) for table in tables]
    regions = [region for _, region in measured if region]
    bases = {id(model.predictions): model.other_datasets for model in evaluated}
    return Section(
        topic=Topic.WHY,
        place=46,
        title=_title(measured, regions),
        text=(
            _method(tables[0]),
            *(_sentence(table, region) for table, region in measured),
        ),
        tables=tuple(_table(region) for region in regions),
        figures=tuple(map_figure(region, f"blind-spots-{i}") for i, region in enumerate(regions)),
        exhibits=tuple(
            exhibit
            for region in regions
            for exhibit in _exhibits(region, bases[id(region.predictions)])
        ),
    )


def _title(measured: Sequence[object], regions: Sequence[Blindness]) -> str:
    """The title: the number of sparse regions, at the false discovery rate of the test."""
    spots = sum(region.spots for region in regions if region.proven)
    if spots:
        where = "region that is" if spots == 1 else "regions that are"
        return f"Blind spots: {spots} {where} sparse in the reference data"
    if any(region.proven for region in regions):
        return "Blind spots: scattered regions, no cluster"
    if not regions:
        return "Blind spots: too few images or videos to find any"
    several = (
        f" for {len(regions)} of {len(measured)} detectors" if len(regions) < len(measured) else ""
    )
    return f"Blind spots: none found{several}"


def _method(table: Predictions) -> str:
    settings = table.probe["settings"]
    how = ""
    if settings["of"] != "images":
        how = f", cut out as a square {1 + settings['enlarge']:g} times as long as the box"
    return (
        f"Each of the {KINDS[settings['of']]} in {table.probe['data']['name']} and in the "
        f"reference data, {table.probe['reference']['name']}{how}, is represented by its "
        f"features from {settings['embedder']}. A region is sparse if few of its nearest "
        "neighbours come from the reference data, compared with labels shuffled between whole "
        "images or videos."
    )


def _sentence(table: Predictions, regions: Blindness | None) -> str:
    if regions is None:
        return (
            f"{table.probe['model']}: not enough regions; at least {LEAST + 1} images "
            "or videos of the reference data and 2 of the tested data are needed."
        )
    thin, n = regions.thinness, len(regions.chosen)
    sets = (
        f"{thin.k} nearest neighbours; {thin.groups[0]:,} images or videos of the reference "
        f"data and {thin.groups[1]:,} of the tested data"
    )
    inside, outside = contents(regions, regions.chosen), contents(regions, ~regions.chosen)
    wrong = (
        f"{_share(inside)} of these and {_share(outside)} of the other regions are mistakes."
        if regions.chosen.any()
        else f"{_share(outside)} of all regions are mistakes."
    )
    name = regions.model
    if regions.proven:
        return (
            f"{name}: {int(regions.chosen.sum()):,} of {n:,} are in sparse regions ({sets}; false "
            f"discovery rate {FALSE:.0%}; {percent(thin.chance)} of {SHUFFLES} shuffles "
            f"have a region as sparse as the sparsest). {wrong}"
        )
    nothing = (
        f"{name}: no region is sparser than with shuffled labels; {percent(thin.chance)} of "
        f"{SHUFFLES} shuffles have a region as sparse as the sparsest here ({sets}). "
    )
    far = (
        f"farther from the reference data than {percent(FAR, 0)} of the reference data from its "
        "own nearest neighbours"
    )
    count = int(regions.chosen.sum())
    if not count:
        return f"{nothing}None of {n:,} is {far}. {wrong}"
    return f"{nothing}{count:,} of {n:,} are {far}; this is only a hint. {wrong}"


def _share(part: SpotContents) -> str:
    ends = interval(part.mistakes.low, part.mistakes.high)
    return f"{percent(part.mistakes.value)} ({ends}, n = {part.mistakes.n:,})"


def _table(regions: Blindness) -> Table:
    rows = [_row(regions, f"{spot + 1}", regions.spot == spot) for spot in range(regions.spots)]
    scattered = regions.chosen & (regions.spot < 0)
    rows += [_row(regions, f"in no {regions.noun}", scattered)] if scattered.any() else []
    rest = "elsewhere" if regions.chosen.any() else "all regions, none sparse or far"
    rows += [_row(regions, rest, ~regions.chosen)] if (~regions.chosen).any() else []
    title = (
        "sparse in the reference data"
        if regions.proven
        else "far from the reference data (only a hint)"
    )
    return Table(
        caption=(
            f"{regions.model}: {regions.noun}s, {title}; an interval from one image or video holds "
            "within that one only"
            if regions.chosen.any()
            else f"{regions.model}: how many of the regions are mistakes"
        ),
        header=(
            regions.noun.capitalize(),
            "Regions",
            "Images or videos",
            "Mistakes (95\u202f%)",
            "n",
            "Most frequent label → prediction",
            "Density ratio",
            "Farther than (share of reference)",
        ),
        rows=tuple(rows),
        open=True,
    )


def _row(regions: Blindness, name: str, inside: np.ndarray) -> tuple[str, ...]:
    part = contents(regions, inside)
    ends = f" ({interval(part.mistakes.low, part.mistakes.high)})" if part.mistakes.n else ""
    ratio = float(np.exp(np.median(regions.thinness.ratio[inside])))
    return (
        name,
        f"{part.count:,}",
        f"{part.videos:,}",
        f"{percent(part.mistakes.value)}{ends}",
        f"{part.mistakes.n:,}",
        f"{part.name} ({part.times:,} of {part.count:,})",
        f"×{ratio:.1f}",
        percent(float(np.median(regions.thinness.far[inside])), 0),
    )


def _exhibits(regions: Blindness, bases: Sequence[Predictions]) -> Iterator[Exhibit]:
    """The crops of each spot, then the films of the shown mistakes that are in a video.

    `bases`: the detector's predictions on the data.
    """
    for spot in range(min(regions.spots, SHOWN)):
        chosen, nearest = examples(regions, spot)
        title = f"{regions.noun.capitalize()} {spot + 1}"
        yield _crops(regions, spot, chosen, nearest)
        for base in bases:
            yield from _mistake_films(regions.predictions, base, title, chosen)


def _mistake_films(
    table: Predictions, base: Predictions, title: str, places: Sequence[int]
) -> Iterator[Exhibit]:
    """One mistake per video on its whole frame, with the frames around it; empty without videos."""
    tags, detections = table.tags, base.raw_detections
    if detections is None:
        return
    faint = judge_detections(base, FAINT)
    corners = np.stack([tags[name] for name in ("x0", "y0", "x1", "y1")], axis=1)
    filmed = set()
    for row in places:
        same = (
            (base.ids[detections.image] == tags["image"][row])
            & (detections.label == tags["own_label"][row])
            & (detections.score == tags["score"][row])
        )
        video = str(tags["video"][row])
        if video in filmed or tags["cause"][row] not in WRONG or not same.any():
            continue
        # a region may be the true box that the detection lies on
        apart = np.abs(detections.boxes - corners[row]).sum(axis=1)
        detection = int(np.where(same, apart, np.inf).argmin())
        film = mistake_film(base, faint, detection)
        if film is None:
            continue
        filmed.add(video)
        name = pair(str(tags["true"][row]), str(tags["said"][row]))
        yield Exhibit(
            title=f"{title}: {name}, in its video",
            model=base.model,
            data=base.data,
            pictures=(_frame(base, detection),),
            film=film,
        )


def _frame(base: Predictions, detection: int) -> Picture:
    """The whole image of a detection, with its box."""
    detections = base.raw_detections
    assert detections is not None, "asked for before"
    sample = str(base.ids[detections.image[detection]])
    name = base.model_classes[detections.label[detection]]
    score = float(detections.score[detection])
    mark = Mark("wrong", tuple(detections.boxes[detection].tolist()), f"{name} {score:.2f}")
    return Picture(sample, sample, (f"predicts {name}, {score:.2f}",), False, (mark,))


def _crops(regions: Blindness, spot: int, places: Sequence[int], nearest: int) -> Exhibit:
    """Regions of a spot, and the nearest region of the reference data."""
    part = contents(regions, regions.spot == spot)
    return Exhibit(
        title=f"{regions.noun.capitalize()} {spot + 1}: {part.name} "
        f"({part.times:,} of {part.count:,}), {number_of(part.wrong, 'mistake')}",
        model=regions.model,
        data=regions.predictions.data,
        pictures=(
            *(_picture(regions.predictions, row, f"in the {regions.noun}") for row in places),
            _picture(regions.predictions, nearest, "nearest in the reference data"),
        ),
        wide=True,
    )


def _picture(table: Predictions, row: int, title: str) -> Picture:
    tags = table.tags
    cause = str(tags["cause"][row])
    return Picture(
        sample=str(table.ids[row]),
        title=title,
        lines=(
            f"predicts {tags['said'][row]}, {percent(float(tags['score'][row]), 0)}",
            f"label {tags['true'][row]}",
            name_cause(cause),
        ),
        right=None if cause == "unverified" else cause not in WRONG,
    )
