"""Lets PyPI's CUDA build of torchvision import over a CPU-only torch, for tests alone.

It declares the two operators that torchvision registers without looking whether they exist. Where
torchvision imports as it is, nothing is done.
"""

import torch

LIBRARY = None

try:
    import torchvision
except RuntimeError:
    # kept in a name: the operators go when the library object does
    LIBRARY = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        LIBRARY.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision

__all__ = ["torchvision"]
