"""Augments training images with one or several degradation operators.

Streams depend on (seed, image id, operator, epoch) alone: an image is the same in any order, batch,
worker or process, alone or among other operators.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from steadyeye.core import plugins
from steadyeye.core.boxes import Boxes, boxes
from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import stream
from steadyeye.core.spec import Spec, split
from steadyeye.core.types import Image
from steadyeye.degradation.counter_rng import draw, level_key, stream_key, uniform
from steadyeye.degradation.operator import Context, Operator, move_boxes, parse_levels
from steadyeye.training.protocol import Augment

PLAIN = "plain"
PROBE = boxes([[16, 16, 48, 48]], [0])
"""A box in the middle of an image of 64 × 64 pixels."""

# levels=0:30 is no Python; in quoted text such a range is always meant as levels
RANGE = re.compile(r"\blevels\s*=\s*(\d+:\d+(?::\d+)?)")


@dataclass(frozen=True)
class Choice:
    """A possible augmentation: an operator at one of its levels; None: no change.

    `share`: of all images.
    """

    operator: Operator | None
    levels: tuple[int, ...]
    share: float


@dataclass(frozen=True)
class Augmentation:
    """An `Augment`: one of the choices, at a uniformly random level, new in each epoch."""

    choices: tuple[Choice, ...]
    seed: int

    def __call__(self, image: Image, example: str, epoch: int) -> Image:
        """The image changed, of the same shape; the same id and epoch give the same image."""
        operator, level, key = self._draw(example, epoch)
        return image if operator is None else operator.start(image, Context(key))(level)

    def move_boxes(self, before: Boxes, size: tuple[int, int], example: str, epoch: int) -> Boxes:
        """The true boxes of the image, (height, width) in pixels, after the augmentation.

        Objects that are no longer in the image are ignored
        (`steadyeye.degradation.operator.move_boxes`).
        """
        operator, level, key = self._draw(example, epoch)
        return before if operator is None else move_boxes(operator, before, level, size, key)

    def check_boxes(self) -> None:
        """Raises `UsageError` for an operator that moves objects without returning their boxes."""
        for choice in self.choices:
            if choice.operator is not None:
                move_boxes(choice.operator, PROBE, max(choice.levels), (64, 64), np.uint64(0))

    def _draw(self, example: str, epoch: int) -> tuple[Operator | None, int, np.uint64]:
        """The operator and level of an image in an epoch, and the key of its random stream."""
        choice = self._choose_level(example, epoch)
        if choice.operator is None:
            return None, 0, np.uint64(0)
        key = stream_key(self.seed, f"{example}\x00{epoch}", choice.operator.name)
        # draws of the operator's own stream, far from those that it uses
        place = int(uniform(level_key(key, -1), len(choice.levels), 1)[0])
        return choice.operator, choice.levels[place], key

    def _choose_level(self, example: str, epoch: int) -> Choice:
        if len(self.choices) == 1:
            return self.choices[0]
        bits = int(draw(stream_key(self.seed, f"{example}\x00{epoch}", "which"), 0))
        upto = list(accumulate(choice.share for choice in self.choices))
        return self.choices[min(bisect_right(upto, bits / 2**64), len(upto) - 1)]

    def record(self) -> list[dict[str, Any]]:
        """The choices with their shares, as plain values."""
        return [
            {
                "operator": choice.operator.name if choice.operator else PLAIN,
                "levels": list(choice.levels),
                "share": round(choice.share, 6),
            }
            for choice in self.choices
        ]


def augmentation(text: str, seed: int = 0) -> Augmentation:
    """The augmentation by a list of operators: for each image and epoch one of them is random.

    `text`: operators with their parameters and `levels`, as `jpeg(levels=0:30)` (`0:30:5`, or a
    list as `'5,10'`; all levels, 0 being the image itself, if left out); a level is drawn uniformly
    from them. Several are drawn equally often; among them `plain(share=0.5)` is the image itself in
    that share of draws, or as often as any if the share is left out. Raises `UsageError` for
    unknown operators and parameters, levels that an operator does not have, and one that needs a
    gradient.
    """
    specs = split(RANGE.sub(r"levels='\1'", text))
    if not specs:
        raise UsageError("the augmentation is empty; name an operator, as 'jpeg(levels=0:30)'")
    plain = [spec for spec in specs if spec.name == PLAIN]
    if len(plain) > 1 or len(plain) == len(specs):
        raise UsageError(f"augmentation '{text}': give 'plain' once, together with an operator")
    share = _share(plain[0].kwargs, len(specs)) if plain else 0.0
    others = (1 - share) / (len(specs) - len(plain))
    choices = [
        Choice(None, (0,), share) if spec.name == PLAIN else _choice(spec, others) for spec in specs
    ]
    names = [choice.operator.name for choice in choices if choice.operator]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"augmentation with '{name}' twice; name every operator once")
    return Augmentation(tuple(choices), seed)


def _choice(spec: Spec, share: float) -> Choice:
    own = dict(spec.kwargs)
    # `callable` has its own `levels`, a number
    levels = own.pop("levels") if isinstance(own.get("levels"), str) else None
    if levels is None and spec.name != "callable" and "levels" in own:
        levels = _format_levels(spec, own.pop("levels"))
    operator: Operator = plugins.build("operators", Spec(spec.name, own))
    if operator.needs_gradient:
        raise UsageError(
            f"{operator.name} needs the gradient of the model, which changes while it trains; "
            "augment with another operator"
        )
    chosen = tuple(range(operator.last + 1))
    try:
        chosen = chosen if levels is None else parse_levels(levels, operator.last)
    except UsageError as error:
        raise UsageError(f"{operator.name}: {error}") from None
    return Choice(operator, chosen, share)


def _format_levels(spec: Spec, levels: Any) -> str:
    """Levels given as a number or several, as text."""
    several = [levels] if isinstance(levels, int) else levels
    if not isinstance(several, Sequence) or not all(isinstance(level, int) for level in several):
        raise UsageError(f"{spec}: write levels=0:30, or a list as levels='5,10'")
    return ",".join(map(str, several))


def _share(arguments: Mapping[str, Any], choices: int) -> float:
    share = arguments.get("share", 1 / choices)
    if set(arguments) - {"share"} or not isinstance(share, int | float) or not 0 < share < 1:
        raise UsageError(f"{Spec(PLAIN, arguments)}: plain takes a share above 0 and below 1")
    return float(share)


def mirror_images(after: Augment | None = None, seed: int = 0) -> Augment:
    """An `Augment`: half of the images mirrored, by (seed, id, epoch) alone; `after`: what follows.

    For classifiers: boxes stay where they are.
    """

    def augment(image: Image, example: str, epoch: int) -> Image:
        if stream(seed, "mirror", example, str(epoch)).random() < 0.5:
            image = np.ascontiguousarray(image[:, ::-1])
        return image if after is None else after(image, example, epoch)

    return augment
