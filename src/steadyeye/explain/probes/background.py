"""The object of a detection before other backgrounds."""

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
    in_folder,
    make_backgrounds,
    qualifying,
)
from steadyeye.explain.context import Probe, Subject
from steadyeye.explain.grid_source import Change, ProbeGrid, Step
from steadyeye.explain.object_masks import Mask, Masker, grabcut, nearest, of_truth, pack_mask
from steadyeye.explain.score_cutoff import refuse_cut
from steadyeye.explain.targets import Target

KINDS = "gradient, noise, frames"


def background(
    subject: Subject, folder: str | None = None, kinds: str | None = None, masks: str = "truth"
) -> Probe:
    """Images in which all but the target's object is replaced by a background.

    Of each image the most confident mistake and the most confident control are tried. The object
    keeps its pixels and its place, its edge is hard, as in the paper; the background is in the
    size of the image. `folder`: of images to stand behind it. `kinds`: backgrounds made up, any of
    "gradient", "noise" (1/f) and "frames" (the data's own, blurred); all of them where there is no
    folder. Only those count in which the detector finds nothing above 0.1 in any size in use,
    which is a sealed cell of its own; six at least. A detector that cuts its own scores above 0.1
    and cannot be asked not to is refused. `masks`: "truth" takes the data's own; where
    there is none, "grabcut" guesses from the box by colours, and "hf(name='…')" or
    "torchvision(name='maskrcnn_…')" segment; targets without a mask are left out. Step "" is the
    image as it is. Lau et al. 2021.
    """
    refuse_cut(subject, "background", NOTHING)
    chosen = most_confident(subject)
    masker, mark = _masker(masks)
    found, notes = _masks(subject, chosen, masker, masks)
    offered = in_folder(folder) if folder else []
    given = KINDS if kinds is None and not folder else kinds or ""
    offered += make_backgrounds(
        [kind.strip() for kind in given.split(",") if kind.strip()], subject
    )
    sizes = sorted({mask.size for mask in found.values()})
    source = Backdrops(f"{subject.source.name}+backgrounds", offered, sizes)
    fit, why = qualifying(offered, subject.sealed("backgrounds", source))
    _refuse_few(subject, fit, len(offered), why)
    steps = [{"background": name} for name in ("", *(each.name for each in fit))]
    notes += [f"{len(fit)} of {len(offered)} backgrounds qualify{f': {why}' if why else ''}"]
    settings = {
        "masks": masks,
        "backgrounds": len(fit),
        "offered": len(offered),
        "marks": _marks(found, fit, mark),
    }
    return Probe(
        ProbeGrid(
            subject,
            "background",
            steps,
            _change(found, fit),
            settings,
            tuple(found),
            tuple(notes),
            about=lambda target: {"mask": found[target].origin},
        )
    )


def most_confident(subject: Subject) -> list[Target]:
    """Of each image the most confident mistake and the most confident control."""
    best: dict[tuple[bool, int], Target] = {}
    for each in subject.targets:
        key = (bool(each.cause), each.row)
        if key not in best or each.score > best[key].score:
            best[key] = each
    return list(best.values())


def compose_image(image: Image, mask: Mask, behind: Image) -> Image:
    """The pixels of the mask from the image, all others from what is behind; a hard edge."""
    return np.where(mask.pixels[..., None], image, behind)


def _change(found: Mapping[Target, Mask], fit: Sequence[Background]) -> Change:
    by_name = {each.name: each for each in fit}

    def change(image: Image, target: Target, step: Step) -> Image:
        name = str(step["background"])
        if not name:
            return image
        mask = found[target]
        return compose_image(image, mask, by_name[name].make(mask.size))

    return change


def _masker(masks: str) -> tuple[Masker | None, str]:
    """What segments where the truth has no mask, None for nothing; and what changes with it."""
    if masks in ("truth", "grabcut"):
        return (None if masks == "truth" else grabcut), masks
    if "(" not in masks:
        raise UsageError(
            f"background(masks={masks!r}): give 'truth', 'grabcut', \"hf(name='…')\" or "
            "\"torchvision(name='maskrcnn_resnet50_fpn')\""
        )
    # torch is only asked for where it is needed
    segmentation = importlib.import_module("steadyeye.models.detectors.instance_masks")
    segment, mark = segmentation.instances(parse(masks))
    return lambda image, target: nearest(segment(image), target), mark


def _masks(
    subject: Subject, chosen: Sequence[Target], masker: Masker | None, called: str
) -> tuple[dict[Target, Mask], list[str]]:
    """The masks of the targets that have one, and how many have none.

    Raises `UsageError` where no mistake has one.
    """
    found: dict[Target, Mask] = {}
    for each in chosen:
        sample = subject.sample(each)
        pixels, origin = of_truth(sample, each), "truth"
        if pixels is None and masker is not None:
            pixels, origin = masker(sample.image(), each), called
        if pixels is not None:
            found[each] = pack_mask(pixels, origin)
    without = [each for each in chosen if each not in found]
    if not any(each.cause for each in found):
        raise UsageError(
            f"background: none of the {number_of(sum(bool(e.cause) for e in chosen), 'mistake')} "
            f"of {subject.model.name} has a mask in '{subject.source.name}'; give "
            "background(masks=…) a segmentation model, or 'grabcut' to guess masks from the boxes"
        )
    notes = [
        f"{len(without):,} of {number_of(len(chosen), 'detection')} have no mask and are left out"
    ]
    return found, notes if without else []


def _refuse_few(subject: Subject, fit: Sequence[Background], offered: int, why: str) -> None:
    if len(fit) < FEWEST:
        raise UsageError(
            f"background: {len(fit)} of {offered} backgrounds qualify for {subject.model.name}, "
            f"at least {FEWEST} are needed{f' ({why})' if why else ''}; give a folder with more "
            "of them"
        )


def _marks(found: Mapping[Target, Mask], fit: Sequence[Background], mark: str) -> str:
    """Changes when a mask, what made it, or a background does."""
    parts = [mask.packed.tobytes() for mask in found.values()]
    return fingerprint(mark, *parts, *(each.mark for each in fit))
