"""Images mirrored left to right, every other one, before anything else happens to them."""

import numpy as np

from steadyeye.core.seeds import stream
from steadyeye.core.types import Image
from steadyeye.training.protocol import Augment


def mirror_images(after: Augment | None = None, seed: int = 0) -> Augment:
    """An `Augment`: half of the images mirrored, by (seed, id, epoch) alone; `after`: what follows.

    For classifiers: boxes stay where they are.
    """

    def augment(image: Image, example: str, epoch: int) -> Image:
        if stream(seed, "mirror", example, str(epoch)).random() < 0.5:
            image = np.ascontiguousarray(image[:, ::-1])
        return image if after is None else after(image, example, epoch)

    return augment
