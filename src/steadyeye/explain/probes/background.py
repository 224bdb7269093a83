"""The object of a detection on other backgrounds."""

import importlib
from collections.abc import Mapping, Sequence

import numpy as np

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.spec import parse
from steadyeye.core.types import Image
from steadyeye.explain.backgrounds import (
    FEWEST,
    NOTHING,
    Backdrops,
    Background,
    Mask,
    Masker,
    grabcut,
    make_backgrounds,
    nearest,
    of_truth,
    pack_mask,
    read_backgrounds,
    select_qualifying,
)
from steadyeye.explain.context import (
    Change,
    Probe,
    ProbeError,
    ProbeGrid,
    Step,
    Subject,
    cutoff,
)
from steadyeye.explain.targets import Target

KINDS = "gradient, noise, frames"


def background(
    subject: Subject, folder: str | None = None, kinds: str | None = None, masks: str = "truth"
) -> Probe:
    """Images in which all but the target's object is replaced by a background.

    The most confident mistake and the most confident control of each image are tested. The object
    keeps its pixels and its place, with a hard edge as in the paper; the background has the size of
    the image. `folder`: folder of background images. `kinds`: generated backgrounds, any of
    "gradient", "noise" (1/f) and "frames" (the data's own, blurred); all of them without a folder.
    At least six backgrounds must qualify: the detector detects nothing above 0.1 in any size in
    use, which is checked in a separate sealed cell. A detector with a score threshold above 0.1
    that cannot be lowered is refused. `masks`: "truth" takes those of the data; where there are
    none, "grabcut" guesses from the box by colours, and "hf(name='…')" or
    "torchvision(name='maskrcnn_…')" segment; targets without a mask are left out. Step "" is the
    unchanged image. Raises `ProbeError` if no mistake has a mask or too few backgrounds qualify.
    Lau et al. 2021.

    Example: `background(kinds='gradient, noise')`
    """
    cut = cutoff(subject.model, subject.predictions)
    if cut > NOTHING:
        raise ProbeError(
            f"background: {subject.model.name} gives no score below {cut:.2f}, so it cannot be "
            f"tested whether it finds nothing above {NOTHING:g}; lower its own threshold, or if "
            "it has none set function.threshold = 0.0"
        )
    objects = most_confident(subject)
    masker, mark = _masker(masks)
    mask_of, notes = _masks(subject, objects, masker, masks)
    offered = read_backgrounds(folder) if folder else []
    texts = (KINDS if kinds is None and not folder else kinds or "").split(",")
    offered += make_backgrounds([kind for text in texts if (kind := text.strip())], subject)
    sizes = sorted({mask.size for mask in mask_of.values()})
    source = Backdrops(f"{subject.source.name}+backgrounds", offered, sizes)
    fit, why = select_qualifying(offered, subject.sealed("backgrounds", source))
    if len(fit) < FEWEST:
        raise ProbeError(
            f"background: {len(fit)} of {len(offered)} backgrounds qualify for "
            f"{subject.model.name}, at least {FEWEST} are needed{f' ({why})' if why else ''}; give "
            "a folder with more of them"
        )
    steps = [{"background": name} for name in ("", *(backdrop.name for backdrop in fit))]
    used = f"{len(fit)} of {number_of(len(offered), 'background')} used"
    notes.append(f"{used}: {why}" if why else used)
    parts = [mask.packed.tobytes() for mask in mask_of.values()]
    marks = fingerprint(mark, *parts, *(backdrop.mark for backdrop in fit))
    counts = {"backgrounds": len(fit), "offered": len(offered)}
    grid = ProbeGrid(
        subject,
        "background",
        steps,
        _change(mask_of, fit),
        {"masks": masks, **counts, "marks": marks},
        tuple(mask_of),
        tuple(notes),
        about=lambda target: {"mask": mask_of[target].origin},
    )
    return Probe(grid)


def most_confident(subject: Subject) -> list[Target]:
    """The most confident mistake and the most confident control of each image."""
    best: dict[tuple[bool, int], Target] = {}
    for target in subject.targets:
        key = (bool(target.cause), target.row)
        if key not in best or target.score > best[key].score:
            best[key] = target
    return list(best.values())


def compose_image(image: Image, mask: Mask, behind: Image) -> Image:
    """The pixels of the mask from the image, all others from the background; a hard edge."""
    return np.where(mask.pixels[..., None], image, behind)


def _change(mask_of: Mapping[Target, Mask], fit: Sequence[Background]) -> Change:
    by_name = {backdrop.name: backdrop for backdrop in fit}

    def change(image: Image, target: Target, step: Step) -> Image:
        name = str(step["background"])
        if not name:
            return image
        mask = mask_of[target]
        return compose_image(image, mask, by_name[name].make(mask.size))

    return change


def _masker(masks: str) -> tuple[Masker | None, str]:
    """The function that segments objects without a true mask, or None; and its fingerprint."""
    if masks in ("truth", "grabcut"):
        return (None if masks == "truth" else grabcut), masks
    if "(" not in masks:
        raise UsageError(
            f"background(masks={masks!r}): give 'truth', 'grabcut', \"hf(name='…')\" or "
            "\"torchvision(name='maskrcnn_resnet50_fpn')\""
        )
    # torch is imported only if it is needed
    segmentation = importlib.import_module("steadyeye.models.detectors.instance_masks")
    segment, mark = segmentation.instances(parse(masks))
    return lambda image, target: nearest(segment(image), target), mark


def _masks(
    subject: Subject, objects: Sequence[Target], masker: Masker | None, called: str
) -> tuple[dict[Target, Mask], list[str]]:
    """The masks of the targets that have one, and the number of those without.

    Raises `ProbeError` if no mistake has one.
    """
    mask_of: dict[Target, Mask] = {}
    for target in objects:
        sample = subject.sample(target)
        pixels, origin = of_truth(sample, target), "truth"
        if pixels is None and masker is not None:
            pixels, origin = masker(sample.image(), target), called
        if pixels is not None:
            mask_of[target] = pack_mask(pixels, origin)
    without = [target for target in objects if target not in mask_of]
    if not any(target.cause for target in mask_of):
        raise ProbeError(
            f"background: none of the {number_of(sum(bool(e.cause) for e in objects), 'mistake')} "
            f"of {subject.model.name} has a mask in '{subject.source.name}'; give "
            "background(masks=…) a segmentation model, or 'grabcut' to guess masks from the boxes"
        )
    notes = [f"{len(without):,} of {number_of(len(objects), 'detection')} left out: no mask"]
    return mask_of, notes if without else []
