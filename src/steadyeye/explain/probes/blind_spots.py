"""Crops of detections and of the reference data, embedded by a classifier."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.seeds import fingerprint
from steadyeye.core.spec import parse
from steadyeye.core.types import Classes, Image, Labels, Sample, Tag, needs
from steadyeye.explain.context import Probe, Subject
from steadyeye.explain.embedding.regions import (
    ENLARGE,
    LISTINGS,
    CropRule,
    Region,
    crop_image,
    draw_regions,
)
from steadyeye.explain.targets import COLUMNS, Target, tags
from steadyeye.models.introspection.embedder import embedder as open_embedder

PACKAGES = ("onnx",)
EXTRA = "explain"

MOST = 20_000
KEPT = 8  # decoded images in memory, because crops of one image follow each other
NAME = "blind_spots"


@needs("reference")
def blind_spots(
    subject: Subject,
    embedder: str = "efficientnet_lite0",
    layer: str = "",
    of: str = "detections",
    enlarge: float = ENLARGE,
    most: int = MOST,
) -> Probe:
    """Feature vectors of a classifier for the crops of both sets.

    `embedder`: the spec of a classifier, read at `layer` (by default the input of its last layer),
    or of a callable whose output is the vector. `of`: "detections", the confident ones; "truth",
    the true boxes; "images", whole. `enlarge`: the share of its longer side by which a box is
    enlarged before it is squared. `most`: largest number of regions of either set; more are sampled
    at random.

    Example: `blind_spots(embedder='efficientnet_lite0', of='truth')`
    """
    if subject.reference_predictions is None:
        raise UsageError("blind_spots needs reference data; give --reference")
    if of not in LISTINGS:
        raise unknown("kind of region", of, LISTINGS)
    if most < 1:
        raise UsageError(f"blind_spots(most={most}): give at least 1 region")
    sets = (("reference", subject.reference_predictions), ("data", subject.predictions))
    regions = tuple(
        (name == "reference", region)
        for name, predictions in sets
        for region in draw_regions(
            LISTINGS[of](predictions, subject.score), most, subject.seed, name
        )
    )
    model = open_embedder(plugins.build("models", parse(embedder)), layer)
    settings = {
        "embedder": embedder,
        "layer": str(model.recipe["layer"]),
        "of": of,
        "enlarge": float(enlarge),
        "most": most,
    }
    return Probe(Regions(subject, regions, CropRule(enlarge), settings), model)


@dataclass(frozen=True, eq=False)
class Regions:
    """A `Source` of crops: those of the reference, then those of the data.

    `regions`: whether a region is of the reference, and the region.
    """

    subject: Subject
    regions: Sequence[tuple[bool, Region]]
    crop: CropRule
    settings: Mapping[str, Any]
    _decoded: Callable[[bool, int], Image] = field(init=False, repr=False)
    # the model's output for a crop is a vector
    classes: ClassVar[Classes | None] = None
    notes: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        def decode(of_reference: bool, row: int) -> Image:
            return self._sample(of_reference, row).image()

        object.__setattr__(self, "_decoded", lru_cache(KEPT)(decode))

    @property
    def name(self) -> str:
        """The data and the probe."""
        return f"{self.subject.source.name}+{NAME}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The tags of targets, `set` (reference or data), `said` (prediction), `true` (label)."""
        return (*COLUMNS, "set", "said", "true", NAME)

    @cached_property
    def fingerprint(self) -> str:
        """Changes with either set, the regions and the crop rule."""
        subject = self.subject
        assert subject.reference is not None, "checked by needs"
        return fingerprint(
            subject.source.fingerprint,
            subject.reference.fingerprint,
            repr(self.regions),
            repr(dict(self.settings)),
        )

    @property
    def ids(self) -> Sequence[str]:
        """`reference/` or `data/`, then the image and the region."""
        return [_id(*region) for region in self.regions]

    @property
    def truths(self) -> Sequence[Labels]:
        """No labels."""
        return [()] * len(self)

    def missing(self) -> Sequence[str]:
        """The files that either set lacks."""
        assert self.subject.reference is not None, "checked by needs"
        return [*self.subject.source.missing(), *self.subject.reference.missing()]

    def __len__(self) -> int:
        return len(self.regions)

    def __getitem__(self, index: int) -> Sample:
        of_reference, region = self.regions[index]
        sample = self._sample(of_reference, region.row)
        video = str(sample.tags.get("video", sample.id))
        target = Target(
            region.id,
            region.row,
            region.box or (0.0, 0.0, 0.0, 0.0),
            region.own_label,
            region.score,
            region.cause,
        )
        words: Mapping[str, Tag] = {
            "set": "reference" if of_reference else "data",
            "said": region.predicted,
            "true": region.true,
        }
        return Sample(
            id=_id(of_reference, region),
            image=lambda: self._cut(of_reference, region),
            group=region.id,
            tags={**tags(target, sample.id, video), **words},
        )

    def _sample(self, of_reference: bool, row: int) -> Sample:
        source = self.subject.reference if of_reference else self.subject.source
        assert source is not None, "checked by needs"
        return source[row]

    def _cut(self, of_reference: bool, region: Region) -> Image:
        image = self._decoded(of_reference, region.row)
        return image if region.box is None else crop_image(image, np.array(region.box), self.crop)


def _id(of_reference: bool, region: Region) -> str:
    return f"{'reference' if of_reference else 'data'}/{region.id}"
