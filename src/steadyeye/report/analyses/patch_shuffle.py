"""Whether detections remain when the inside of their box is shuffled."""

from collections.abc import Sequence

from steadyeye.core.format import percent
from steadyeye.core.report_types import Section
from steadyeye.core.types import Evaluated, needs
from steadyeye.report.charts.probes import ProbeNames, build_section
from steadyeye.report.probe_wording import measure_changes, sentence

NAMES = ProbeNames(
    "Shuffling patches inside the box",
    "the patches inside its box are shuffled",
    "patch-shuffle",
    "repeat",
)


@needs("target", "patch_shuffle")
def patch_shuffle(evaluated: Sequence[Evaluated]) -> Section | None:
    """|Δ probability| after a shuffle of patches, of confident mistakes and correct detections.

    A detection that remains after the shuffle depends on texture more than on shape. Lau et al.
    2021, Figure 10. None if no detection could be tested.
    """
    models = measure_changes(evaluated, "repeat", 0)
    if not models:
        return None
    settings = models[0].predictions.probe["settings"]
    text = (
        f"Inside the box, two random patches of {percent(settings['share'], 0)} of its "
        f"width and height change places, {settings['swaps']} times; this is repeated "
        f"{settings['repeats']} times. If a detection hardly changes, it depends on local "
        "texture, not on the arrangement of the parts. |Δ| is the change in the probability "
        "of the best-overlapping detection of the same class, 0 if there is none.",
        *map(sentence, models),
    )
    return build_section(models, NAMES, 40, text)
