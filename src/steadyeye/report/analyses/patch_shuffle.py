"""Whether detections survive when the inside of their box is shuffled."""

from collections.abc import Sequence

from steadyeye.core.format import percent
from steadyeye.core.report_types import Section, Topic
from steadyeye.core.types import Evaluated, needs
from steadyeye.report.explain.charts import exhibits, figure
from steadyeye.report.explain.wording import (
    by_cause,
    by_class,
    claim,
    measure_changes,
    question,
    sentence,
)


@needs("target", "patch_shuffle")
def patch_shuffle(evaluated: Sequence[Evaluated]) -> Section | None:
    """|Δ probability| of confident mistakes and of correct detections with patches swapped.

    A detection that survives the shuffling of its inside rests on texture more than on shape.
    Lau et al. 2021, Figure 10. None where nothing could be tried.
    """
    told = measure_changes(evaluated, "repeat", 0)
    if not told:
        return None
    settings = told[0].predictions.probe["settings"]
    shown = claim("Shuffling patches inside the box", told)
    return Section(
        topic=Topic.WHY,
        place=40,
        title=shown.text if shown else question("Shuffling patches inside the box", told),
        claim=shown,
        text=(
            f"Inside the box, two random patches of {percent(settings['share'], 0)} of its "
            f"width and height change places, {settings['swaps']} times; this is repeated "
            f"{settings['repeats']} times. If a detection hardly changes, it depends on local "
            "texture, not on the arrangement of the parts. |Δ| is the change in the probability "
            "of the best-overlapping detection of the same class, 0 if there is none.",
            *map(sentence, told),
        ),
        tables=tuple(table for each in told for table in (by_cause(each), by_class(each))),
        figures=tuple(
            figure(each, f"patch-shuffle-{i}", "the patches inside its box are shuffled")
            for i, each in enumerate(told)
        ),
        exhibits=tuple(shown for each in told for shown in exhibits(each, "repeat")),
    )
