"""What an answer is an answer to: the model, the code and packages around it, and the image."""

import hashlib

import numpy as np

from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Image

SIZE = 32  # bytes of a key


def of_sample(mark: str, image_code: str, sample: str) -> bytes:
    """The key of the answer of a model (`model_mark`) to a sample (`Sample.key`).

    `image_code`: of the code that makes the image of what the key names
    (`runner.cache.answer_code.mark`).
    """
    text = f"{mark}\n{image_code}\n{sample}"
    return hashlib.blake2b(text.encode(), digest_size=SIZE).digest()


def of_pixels(mark: str, image: Image) -> bytes:
    """The key of the answer of a model to an image whose source does not say what it is."""
    digest = hashlib.blake2b(f"{mark}\npixels {image.shape}\n".encode(), digest_size=SIZE)
    digest.update(np.ascontiguousarray(image).data)
    return digest.digest()


def model_mark(model: str, fitted: bool, code: str) -> str:
    """What all answers of a model share: its fingerprint, its code and the packages it runs on.

    `fitted`: whether its images are fitted already, as those of a sweep are. `code`: of the model
    (`runner.cache.answer_code.mark`); another version of ONNX Runtime may differ in the last bit.
    """
    return fingerprint(model, "fitted" if fitted else "whole", code)
