"""Detectors that look at one place alone and always say the same box, for the tests of `explain`.

Their score is 0.8 and a fifth of the mean brightness of the place.
"""

import numpy as np
import torch

from steadyeye.inference.opened import Opened

BOX = (20.0, 12.0, 50.0, 36.0)
SIZE = (48, 60)
CAT = 15


def place(inside):
    """(h, w) weights that sum to 1, in the box or around it."""
    weight = np.zeros(SIZE)
    x0, y0, x1, y1 = map(int, BOX)
    weight[y0:y1, x0:x1] = 1
    weight = weight if inside else 1 - weight
    return weight / weight.sum()


def detector(inside):
    """The function and, as its attribute, the same opened for integrated gradients."""
    weight = place(inside)

    def detect(images):
        light = [float((image.mean(axis=2) * weight).sum()) / 255 for image in images]
        return [([BOX], [0.8 + 0.2 * each], [CAT]) for each in light]

    def prepare(image):
        return torch.from_numpy(image.astype(np.float32)).permute(2, 0, 1)[None] / 255

    def scores(values):
        light = (values.mean(1) * torch.from_numpy(weight).float()).sum((1, 2))
        found = torch.zeros(len(values), 1, 80)
        return found.index_put(
            (torch.arange(len(values)), torch.tensor(0), torch.tensor(CAT)), 0.8 + 0.2 * light
        )

    def opened(image):
        return Opened(image, prepare, (1.0, 1.0), np.array(BOX)[None, None], scores)

    detect.opened = opened
    return detect


looks_inside = detector(inside=True)
looks_outside = detector(inside=False)


def black_box(images):
    """As `looks_inside`, which nothing can look into."""
    return looks_inside(images)
