"""Small networks and functions that the tests name in specs."""

import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    """Ten classes from the mean of eight channels; `gain` is part of no state dict and no repr."""

    def __init__(self, gain=1.0):
        super().__init__()
        self.convolution = nn.Conv2d(3, 8, 3, stride=2)
        self.linear = nn.Linear(8, 10)
        self.gain = gain

    def forward(self, images):
        features = self.convolution(images).relu().mean((2, 3))
        return self.gain * self.linear(features)


class Branching(Net):
    """Takes one of two ways, as its first pixel says: tracing keeps only one."""

    def forward(self, images):
        scores = super().forward(images)
        return scores if images[0, 0, 0, 0] > 0 else -scores


class Forgetful(Net):
    """Keeps what it is working on in an attribute, which other threads would overwrite."""

    def forward(self, images):
        self.images = images
        for _ in range(20):
            self.images = self.images + 0.1
        return super().forward(self.images)


class Wrapped(Net):
    def forward(self, images):
        return {"scores": super().forward(images)}


def seeded(kind=Net, **kwargs):
    torch.manual_seed(0)
    return kind(**kwargs).eval()


def net():
    return seeded()


def branching():
    return seeded(Branching)


def forgetful():
    return seeded(Forgetful)


def wrapped():
    return seeded(Wrapped)


def no_module():
    return "text"


def brightness(images):
    """Two classes, dark and bright, and the number of images that came in the call."""
    light = images.reshape(len(images), -1).mean(axis=1)
    return np.stack([255 - light, light, np.full(len(images), len(images))], axis=1)


def flat(images):
    return images.reshape(len(images), -1).mean(axis=1)


def text(images):
    return np.array([["a"]] * len(images))
