"""YOLOX-nano's ONNX file computed by torch, node by node: a real detector that can be opened.

Only the ten operators that the file holds. Used as `callable_detector(path='onnx_in_torch:yolox')`;
the file is that of the test data.
"""

import os
from pathlib import Path

import onnx
import torch
from onnx import numpy_helper
from torch.nn import functional

from steadyeye.inference.decoders import yolox as decode
from steadyeye.inference.detector import DetectorRecipe, kept
from steadyeye.inference.opened import Opened

DATA = Path(os.environ.get("STEADYEYE_TEST_DATA", "../shared/data"))
RECIPE = DetectorRecipe((416, 416))


def convolution(x, weight, bias, *, group, strides, pads, dilations, **how):
    top, left, *_ = pads
    return functional.conv2d(x, weight, bias, strides, (top, left), dilations, group)


def pooling(x, ceil_mode, kernel_shape, pads, strides):
    return functional.max_pool2d(x, kernel_shape, strides, pads[:2])


def cut(x, starts, ends, axes, steps):
    for start, end, axis, step in zip(
        *(e.tolist() for e in (starts, ends, axes, steps)), strict=True
    ):
        place = [slice(None)] * x.ndim
        place[axis] = slice(start, min(end, x.shape[axis]), step)
        x = x[tuple(place)]
    return x


def enlarged(x, roi, scales, **how):
    assert how["mode"] == b"nearest"
    return functional.interpolate(x, scale_factor=scales.tolist()[2:], mode="nearest")


OPERATORS = {
    "Conv": convolution,
    "Sigmoid": torch.sigmoid,
    "Mul": torch.mul,
    "Add": torch.add,
    "Concat": lambda *parts, axis: torch.cat(parts, axis),
    "Slice": cut,
    "MaxPool": pooling,
    # the first of its axes is written as the batch of one
    "Reshape": lambda x, shape: x.reshape([len(x), *shape.tolist()[1:]]),
    "Resize": enlarged,
    "Transpose": lambda x, perm: x.permute(perm),
}


class Network:
    """The graph; weights are read when it is first called."""

    def __init__(self, path):
        self.path = path
        self.graph = None

    def __call__(self, images):
        if self.graph is None:
            self.graph = onnx.load(self.path).graph
            self.weights = {
                each.name: torch.from_numpy(numpy_helper.to_array(each).copy())
                for each in self.graph.initializer
            }
        values = {**self.weights, "images": images}
        for node in self.graph.node:
            how = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
            given = [values[name] for name in node.input if name]
            values[node.output[0]] = OPERATORS[node.op_type](*given, **how)
        return values[self.graph.output[0].name]


network = Network(DATA / "models" / "yolox_nano.onnx")


def yolox(images):
    """(boxes, scores, labels) of each image."""
    found = []
    for image in images:
        batch, frame = RECIPE.prepare(image)
        with torch.no_grad():
            rows = network(torch.from_numpy(batch)).numpy()
        said = kept(decode([rows], frame), RECIPE.threshold, RECIPE.overlap)
        found.append((said.boxes, said.scores, said.labels))
    return found


def opened(image):
    """The cells of an image with their scores."""
    batch, frame = RECIPE.prepare(image)
    with torch.no_grad():
        boxes = decode([network(torch.from_numpy(batch)).numpy()], frame).boxes

    def scores(values):
        rows = network(values)
        return rows[..., 4:5] * rows[..., 5:]

    def prepare(given):
        return torch.from_numpy(RECIPE.prepare(given)[0])

    return Opened(image, prepare, frame.scale, boxes[:, None], scores)


yolox.opened = opened
