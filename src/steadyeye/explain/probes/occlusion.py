"""Images under a sliding grey patch, for attribution maps of black boxes."""

from steadyeye.core.errors import UsageError
from steadyeye.core.types import Image
from steadyeye.explain.attributions import MEASURED, sizes
from steadyeye.explain.context import Probe, ProbeGrid, Step, Subject
from steadyeye.explain.saliency import cover_patch, patch
from steadyeye.explain.targets import Target


def occlusion(subject: Subject, patches: int = 12, fill: int = 127) -> Probe:
    """Images with a grey patch at each position of a grid, one at a time.

    `patches`: places along each axis; a patch is two strides long, a sixth of the height and width
    with twelve. `fill`: its grey value. Mask 0 is the unchanged image. Raises `UsageError` for
    values out of range. Zeiler and Fergus 2014, Section 4.2. Unlike RISE it has no randomness, but
    does not detect parts that matter only together.

    Example: `attribution(probe='occlusion', patches=8)`
    """
    if patches < 1 or not 0 <= fill <= 255:
        raise UsageError(
            f"occlusion(patches={patches}, fill={fill}): give at least one place and a grey "
            "value 0…255"
        )
    settings = {"patches": patches, "fill": fill}
    steps: list[Step] = [
        {"attribution": "occlusion", "mask": number} for number in range(patches**2 + 1)
    ]

    def change(image: Image, target: Target, step: Step) -> Image:
        number = int(step["mask"])
        return image if number == 0 else cover_patch(image, patch(number - 1, patches), fill)

    probe = ProbeGrid(
        subject, "occlusion", steps, change, settings, measure=sizes, unmeasured=MEASURED
    )
    return Probe(probe)
