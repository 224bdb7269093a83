"""Small networks to be trained further, which the tests name in specs."""

import torch
from torch import nn


class Normed(nn.Module):
    """Batch normalisation between a convolution and the head."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 8, 3, stride=2)
        self.norm = nn.BatchNorm2d(8)
        self.linear = nn.Linear(8, 10)

    def forward(self, images):
        return self.linear(self.norm(self.convolution(images)).relu().mean((2, 3)))


class Softmaxed(Normed):
    """Ends in probabilities."""

    def forward(self, images):
        return super().forward(images).softmax(1)


class Stuck(Normed):
    """Holds a weight that no layer of torch knows."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.full((10,), 2.0))

    def forward(self, images):
        return super().forward(images) * self.gain


class Headless(nn.Module):
    """Its scores are ten of the sixteen numbers of its last layer."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 16)

    def forward(self, images):
        return self.linear(images.mean((2, 3)))[:, :10]


class Moody(Normed):
    """Multiplies by what no state dict holds."""

    built = 0

    def __init__(self):
        super().__init__()
        Moody.built += 1
        self.gain = Moody.built

    def forward(self, images):
        return super().forward(images) * self.gain


def moody():
    return _seeded(Moody)


def normed():
    return _seeded(Normed)


def softmaxed():
    return _seeded(Softmaxed)


def stuck():
    return _seeded(Stuck)


def headless():
    return _seeded(Headless)


def _seeded(kind):
    torch.manual_seed(7)
    return kind().eval()
