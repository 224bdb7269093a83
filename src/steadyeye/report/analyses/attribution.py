"""The share of a detection's attribution inside its box."""

from collections.abc import Sequence

import numpy as np

from steadyeye.core.claims import Claim, above, below, first
from steadyeye.core.format import format_share, number_of, percent
from steadyeye.core.report_types import Section, Topic
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.types import Evaluated, needs
from steadyeye.explain.attributions import (
    COMPLETE,
    InsideShares,
    attributions,
    format_gap,
    measure_inside_shares,
    method,
    table,
)
from steadyeye.explain.effects import difference, mean
from steadyeye.report.charts.probes import draw_attribution, show_attributions

NAMES = {"integrated_gradients": "integrated gradients", "rise": "RISE", "occlusion": "occlusion"}


@needs("target", "attribution")
def attribution(evaluated: Sequence[Evaluated]) -> Section | None:
    """The share of attribution inside the box, of confident mistakes and correct detections.

    By integrated gradients (torch), or by RISE or occlusion (black boxes), as the section says.
    Lau et al. 2021, Figure 7. None where no target has an attribution.
    """
    shares = [
        measure_inside_shares(model.predictions, attributions(model.predictions))
        for model in evaluated
    ]
    shares = [share for share in shares if share.attributions]
    if not shares:
        return None
    way = NAMES[method(shares[0].predictions)]
    claim = first(_claims(shares, way))
    return Section(
        topic=Topic.WHY,
        place=44,
        title=claim.text if claim else _question(shares, way),
        claim=claim,
        text=(
            f"{_how(shares[0])} For each map: the share of Σ|attribution| inside the box, one "
            "object at a time. Two values for comparison: a uniform map gives the area of the "
            "box, so large boxes hold more; a detection that depends on its box alone gives the "
            "second value, computed with the same method. Pictures: grey is no attribution, "
            "then violet, orange and light yellow up to the maximum of that map.",
            *map(_sentence, shares),
            *filter(None, map(_caveat, shares)),
        ),
        tables=tuple(map(table, shares)),
        figures=tuple(
            draw_attribution(share, f"attribution-{method(share.predictions)}-{i}", way)
            for i, share in enumerate(shares)
        ),
        exhibits=tuple(exhibit for share in shares for exhibit in show_attributions(share)),
    )


def _claims(shares: Sequence[InsideShares], way: str) -> list[Claim]:
    """What the title may assert of a single model: that mistakes differ from correct detections."""
    if len(shares) > 1:
        return []
    effects = shares[0].effects
    wrong, right = (mean(effects, of).value for of in (effects.mistake, ~effects.mistake))
    numbers = f"{percent(wrong)}, and {percent(right)} for correct detections ({way})"
    begin = "of the attribution of mistakes is inside their box"
    gap = difference(effects)
    return [
        below(f"Less {begin}: {numbers}", gap),
        above(f"More {begin}: {numbers}", gap),
    ]


def _question(shares: Sequence[InsideShares], way: str) -> str:
    question = f"How much of the attribution is inside the box, by {way}?"
    effects = shares[0].effects
    wrong, right = (mean(effects, of).value for of in (effects.mistake, ~effects.mistake))
    if len(shares) > 1 or wrong is None or right is None:
        return question
    none = difference(effects).low is None
    end = f"too few {effects.of} to compare" if none else "no clear difference"
    return f"{question} Mistakes {percent(wrong)}, correct detections {percent(right)}: {end}"


def _how(shares: InsideShares) -> str:
    """The attribution method and its settings, in words."""
    settings = shares.predictions.probe["settings"]
    kind = method(shares.predictions)
    if kind == "integrated_gradients":
        return (
            "Integrated gradients: how each pixel contributes to the score of the query, anchor "
            f"or proposal that made the detection, on the way from a {settings['baseline']} "
            "image to the real image."
        )
    if kind == "rise":
        return (
            f"RISE, from the detector's outputs alone: {settings['masks']:,} random masks per "
            f"detection, grids of {settings['cells']} × {settings['cells']} cells shown with "
            f"probability {settings['keep']:g}. A place's value is how much IoU × score rises "
            "when it is shown."
        )
    return (
        "Occlusion, from the detector's outputs alone: a grey patch at each of "
        f"{settings['patches']} × {settings['patches']} places. A place's value is how much IoU "
        "× score falls when it is hidden."
    )


def _sentence(shares: InsideShares) -> str:
    effects = shares.effects
    wrong, right = mean(effects, effects.mistake), mean(effects, ~effects.mistake)
    if wrong.value is None:
        return f"{shares.model}: no mistake has an attribution map."
    areas = mean(effects, effects.mistake, shares.area)
    text = (
        f"{shares.model}: for {wrong.n:,} confident mistakes {format_share(wrong)} of the "
        f"attribution is inside the box, which covers {percent(areas.value)} of the image"
    )
    if right.value is None:
        return f"{text}; there is no correct detection for comparison."
    control = mean(effects, ~effects.mistake, shares.area)
    return (
        f"{text}; for {right.n:,} correct detections {format_share(right)}, with boxes that cover "
        f"{percent(control.value)}. The difference is {_points(difference(effects))}, and "
        f"{_points(difference(shares.excess))} after subtracting the area of the box."
    )


def _points(gap: Interval) -> str:
    """A difference in percentage points with its interval, or that there is none."""
    number, _, ends = format_gap(gap).partition(" (")
    return f"{number} percentage points ({'no interval)' if ends == '—)' else ends}"


def _caveat(shares: InsideShares) -> str:
    """The limits of the maps of a model, in words; empty if there are none."""
    parts = []
    if shares.effects.lost:
        parts.append(
            f"{number_of(shares.effects.lost, 'detection has', 'detections have')} no map: no "
            "perturbation changed their score."
        )
    residual = np.array([attribution_map.residual for attribution_map in shares.attributions])
    far = residual > COMPLETE
    if far.any():
        steps = max(attribution_map.steps for attribution_map in shares.attributions)
        parts.append(
            f"For {int(far.sum()):,} of {number_of(len(far), 'map')} the sum differs from the "
            f"score difference by more than 1 % after {steps:,.0f} steps (largest error "
            f"{percent(float(residual.max()))}). They are included; use more steps."
        )
    elif np.isfinite(residual).any():
        parts.append(
            f"The sum of each of {number_of(len(far), 'map')} is the score difference within 1 % "
            f"(largest error {percent(float(residual.max()), 2)})."
        )
    agreement = np.array([attribution_map.agreement for attribution_map in shares.attributions])
    if np.isfinite(agreement).any():
        parts.append(
            "Maps from one half of the masks correlate with maps from the other half with "
            f"{np.nanmedian(agreement):.2f} (median). Noise in the maps moves the shares "
            "towards the area of the box."
        )
    return f"{shares.model}: {' '.join(parts)}" if parts else ""
