"""Whether detections depend on what is behind their object."""

from collections.abc import Sequence

import numpy as np

from steadyeye.core.format import number_of
from steadyeye.core.report_types import Section, Table
from steadyeye.core.types import Evaluated, needs
from steadyeye.explain.effects import mean
from steadyeye.report.charts.probes import ProbeNames, build_section
from steadyeye.report.probe_wording import ProbedModel, measure_changes, number, sentence

NAMES = ProbeNames(
    "Replacing the background", "its background is replaced", "background", "background"
)

GUESSED = (
    "guessed by GrabCut from the box, which is less exact: it may keep some background or lose "
    "part of the object"
)


@needs("target", "background")
def background(evaluated: Sequence[Evaluated]) -> Section | None:
    """|Δ probability| on other backgrounds, of confident mistakes and correct detections.

    A detection that remains on a new background depends on the object, not on its surroundings. Lau
    et al. 2021, Figure 6. None if no detection could be tested.
    """
    models = measure_changes(evaluated, "background", "")
    if not models:
        return None
    settings = models[0].predictions.probe["settings"]
    text = (
        "The object keeps its pixels, place and edge. Everything else is replaced by each "
        f"of {settings['backgrounds']} backgrounds, of {settings['offered']} offered, in "
        "which the detector finds nothing above 0.1. If a detection hardly changes, it does "
        "not depend on its background. |Δ| is the change in the probability of the "
        "best-overlapping detection of its class, 0 if there is none.",
        *map(sentence, models),
        *map(_origins, models),
    )
    return build_section(models, NAMES, 41, text, lambda model: [_build_table(model)])


def _origins(model: ProbedModel) -> str:
    """The source of the masks, in words."""
    masks = np.asarray(model.predictions.tags["mask"])[model.effects.plain]
    sources = {"truth": "the data's own", "grabcut": GUESSED}
    counted = [
        f"{number_of(int((masks == name).sum()), 'mask')}: {sources.get(name, f'by {name}')}"
        for name in sorted(set(masks.tolist()), reverse=True)
    ]
    left = [note for note in model.predictions.notes if "no mask" in note]
    return ". ".join([f"{model.model}: {', '.join(counted)}", *left]) + "."


def _build_table(model: ProbedModel) -> Table:
    """Every background: how much it changes mistakes and correct detections."""
    effects, backgrounds = model.effects, np.asarray(model.predictions.tags["background"])
    p = effects.matches.probability
    body = []
    for name in dict.fromkeys(backgrounds[backgrounds != ""].tolist()):
        # a row of the probe that failed leaves no number
        rows = [next((r for r in rest if backgrounds[r] == name), -1) for rest in effects.changed]
        has_row = np.array([row >= 0 for row in rows])
        values = np.abs(p[np.array(rows)] - p[effects.plain])
        cells = [
            number(mean(effects, kind & has_row, values))
            for kind in (effects.mistake, ~effects.mistake)
        ]
        body.append((name, f"{int(has_row.sum())}", *cells))
    header = ("background", "n", "mistakes, mean |Δ|", "correct, mean |Δ|")
    return Table(f"{model.model}: by background", header, tuple(body))
