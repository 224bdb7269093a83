"""Lets PyPI's CUDA build of torchvision import over a CPU-only torch, for tests alone.

It declares the two operators that torchvision registers without looking whether they exist, and
gives the one that detectors cannot do without, `nms`, a body; `roi_align` torchvision then runs in
its own Python, forwards and backwards, which is not compiled: that takes a minute. Where
torchvision imports as it is, nothing is done.
"""

import importlib

import numpy as np
import torch
from numba import njit

LIBRARY = None


def nms(dets, scores, iou_threshold):
    """Greedy suppression, as torchvision's kernel for the processor does it."""
    order = scores.argsort(descending=True, stable=True)
    kept = _kept(dets.numpy(), order.numpy(), iou_threshold)
    return order[torch.from_numpy(kept)]


@njit(cache=True)
def _kept(boxes, order, most):
    left = np.ones(len(order), dtype=np.bool_)
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    for i in range(len(order)):
        if not left[i]:
            continue
        a = order[i]
        for j in range(i + 1, len(order)):
            b = order[j]
            width = min(boxes[a, 2], boxes[b, 2]) - max(boxes[a, 0], boxes[b, 0])
            height = min(boxes[a, 3], boxes[b, 3]) - max(boxes[a, 1], boxes[b, 1])
            if left[j] and width > 0 and height > 0:
                shared = width * height
                left[j] = shared / (areas[a] + areas[b] - shared) <= most
    return np.flatnonzero(left)


try:
    import torchvision
except RuntimeError:
    # kept in a name: the operators go when the library object does
    LIBRARY = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        LIBRARY.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    LIBRARY.impl("nms", nms, "CPU")
    import torchvision
    from torchvision.ops import boxes

    aligning = importlib.import_module("torchvision.ops.roi_align")
    aligning._roi_align = aligning._roi_align.__wrapped__
    # torchvision asks this before it calls the operator
    boxes._assert_has_ops = lambda: None

__all__ = ["torchvision"]
