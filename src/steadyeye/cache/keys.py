"""What an answer is an answer to: the model, the code and packages around it, and the image."""

import hashlib
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from steadyeye.core.plugins import ROOT
from steadyeye.core.provenance import provenance
from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Image

SIZE = 32  # bytes of a key

CODE = ("core", "degradation", "degrade", "footage", "images", "inference", "models", "sources")
"""Packages of ours whose code shapes the image that a model sees and what it says."""


def of_sample(mark: str, sample: str) -> bytes:
    """The key of the answer of a model (`model_mark`) to a sample (`Sample.key`)."""
    return hashlib.blake2b(f"{mark}\n{sample}".encode(), digest_size=SIZE).digest()


def of_pixels(mark: str, image: Image) -> bytes:
    """The key of the answer of a model to an image whose source does not say what it is."""
    digest = hashlib.blake2b(f"{mark}\npixels {image.shape}\n".encode(), digest_size=SIZE)
    digest.update(np.ascontiguousarray(image).data)
    return digest.digest()


def model_mark(model: str, fitted: bool) -> str:
    """What all answers of a model share: its fingerprint, our code and the packages it runs on.

    `fitted`: whether its images are fitted already, as those of a sweep are. Another version of
    ONNX Runtime or of a decoder may differ in the last bit, so it does not take these answers.
    """
    return fingerprint(model, "fitted" if fitted else "whole", surroundings())


FURTHER = ("efficientnet-lite-pytorch", "keras", "safetensors")
"""Packages that shape answers beside those in every record."""


@cache
def surroundings() -> str:
    """A fingerprint of our code, where it shapes answers, and of the versions of the packages."""
    files = sorted(file for name in CODE for file in (ROOT / name).rglob("*.py"))
    code = [part for file in files for part in (str(file.relative_to(ROOT)), file.read_bytes())]
    versions = {k: v for k, v in provenance().items() if k not in ("commit", "steadyeye")}
    for package in FURTHER:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return fingerprint(*code, repr(sorted(versions.items())))
