"""Cost of a level of every operator at 224 × 224, as a ratio to a copy of the image.

    python benchmarks/operators.py [--images FOLDER] [--rounds 5]

One thread. Operators and the copy process the same 64 images in turn and keep their results, as a
sweep does, so that neither has its image or its memory in the nearest cache; an operator returns a
new image, and that copy counts. The limit is the project's goal.

Beside it the nearest operator of albumentations and of imagecorruptions, if they are installed
(`pip install albumentations imagecorruptions`): similar in kind, not equal, and a single change
where ours is one of thirty levels. A dash: none, or it does not run on this numpy.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np

from steadyeye.core import plugins
from steadyeye.core.spec import Spec
from steadyeye.data.images import image_file
from steadyeye.degradation.counter_rng import stream_key
from steadyeye.degradation.operator import LEVELS, Context
from steadyeye.models.preprocessing.recipe import Preprocessing

LIMITS = {
    "black_lines": 4,
    "white_lines": 4,
    "random_boxes": 4,
    "random_noise": 4,
    "random_swap": 4,
    "adjacent_swap": 4,
    "fade_black": 10,
    "fade_white": 10,
    "posterize": 10,
    "global_blur": 10,
    "white_fog": 16,
    "fade_grey": 16,
    "local_blur": 50,
    "jpeg": 80,
}
IMAGES = 64
Timed = Callable[[np.ndarray], object]
CORRUPTIONS = {
    "random_noise": "impulse_noise",
    "global_blur": "defocus_blur",
    "local_blur": "glass_blur",
    "white_fog": "fog",
    "fade_white": "brightness",
    "fade_grey": "saturate",
    "jpeg": "jpeg_compression",
}


def photos(folder: Path | None) -> list[np.ndarray]:
    """64 images of 224 × 224: photos where a folder is given, filtered noise otherwise."""
    fit = Preprocessing((224, 224), 256, (0.0,) * 3, (1.0,) * 3).fit
    if folder:
        paths = sorted(p for p in folder.rglob("*") if p.suffix.lower() in image_file.SUFFIXES)
        return [fit(image_file.read(paths[i % len(paths)])) for i in range(IMAGES)]
    rng = np.random.default_rng(0)
    noise = [rng.integers(0, 256, (224, 224, 3), dtype=np.uint8) for _ in range(IMAGES)]
    return [cv2.GaussianBlur(image, (0, 0), 3) for image in noise]


def level(name: str, images: list[np.ndarray]) -> float:
    """Microseconds of one level, the mean over all levels of all images."""
    operator = plugins.build("operators", Spec(name))
    trails = [
        operator.start(image, Context(stream_key(0, f"{i}", name)))
        for i, image in enumerate(images)
    ]
    started = time.perf_counter()
    for level_number in range(1, LEVELS + 1):
        for trail in trails:
            trail(level_number)
    return (time.perf_counter() - started) / (LEVELS * len(images)) * 1e6


def copying(images: list[np.ndarray]) -> float:
    """Microseconds of a copy, the one before of the same image being kept until then."""
    copies = [image.copy() for image in images]
    started = time.perf_counter()
    for _ in range(LEVELS):
        for i, image in enumerate(images):
            copies[i] = image.copy()
    return (time.perf_counter() - started) / (LEVELS * len(images)) * 1e6


def peer(change: Timed | None, images: list[np.ndarray]) -> float:
    """Microseconds of one change of another library; NaN where there is none or it fails."""
    if change is None:
        return np.nan
    started = time.perf_counter()
    try:
        for image in images:
            change(image)
    except Exception:
        # an unmaintained library may raise any error
        return np.nan
    return (time.perf_counter() - started) / len(images) * 1e6


def albumentations() -> dict[str, Timed]:
    """The nearest transforms of albumentations, if it is installed."""
    if not find_spec("albumentations"):
        return {}
    import albumentations as a

    transforms = {
        "random_boxes": a.CoarseDropout((44, 44), (2, 5), (2, 5), p=1),
        "global_blur": a.Blur((5, 5), p=1),
        "random_noise": a.PixelDropout(0.02, per_channel=False, drop_value=None, p=1),
        "white_fog": a.RandomFog(fog_coef_range=(0.3, 0.3), p=1),
        "fade_black": a.RandomBrightnessContrast((-0.1, -0.1), (0, 0), p=1),
        "fade_white": a.RandomBrightnessContrast((0.1, 0.1), (0, 0), p=1),
        "fade_grey": a.HueSaturationValue((0, 0), (-20, -20), (0, 0), p=1),
        "posterize": a.Posterize(4, p=1),
        "jpeg": a.ImageCompression(quality_range=(17, 17), p=1),
    }
    return {name: lambda image, t=t: t(image=image) for name, t in transforms.items()}


def imagecorruptions() -> dict[str, Timed]:
    """The nearest corruptions of imagecorruptions at severity 3, if it is installed."""
    if not find_spec("imagecorruptions"):
        return {}
    try:
        from imagecorruptions import corrupt
    except ImportError as error:
        print(f"imagecorruptions is installed but does not import: {error}")
        return {}

    def with_name(name: str) -> Timed:
        return lambda image: corrupt(image, corruption_name=name, severity=3)

    return {operator: with_name(name) for operator, name in CORRUPTIONS.items()}


def measured(images: list[np.ndarray], rounds: int) -> Iterator[tuple[str, list[float]]]:
    """Each operator with its ratios to the copy: ours, and the peers' (NaN where there is none)."""
    peers = [albumentations(), imagecorruptions()]
    for name in LIMITS:
        ratios: list[list[float]] = []
        for _ in range(rounds + 1):
            copy = copying(images)
            peer_times = [peer(p.get(name), images[:8]) for p in peers]
            ratios.append([copy, *(t / copy for t in (level(name, images), *peer_times))])
        # the first round compiles
        yield name, [statistics.median(column) for column in zip(*ratios[1:], strict=True)]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cv2.setNumThreads(1)
    images = photos(options.images)
    titles = ("copy µs", "× copy", "limit", "albumentations", "imagecorruptions")
    print(f"{'operator':<15}" + "".join(f"{title:>17}" for title in titles))
    for name, (copy, own, *peer_times) in measured(images, options.rounds):
        cells = [f"{copy:.1f}", f"{own:.1f}", f"≤ {LIMITS[name]}"]
        cells += ["—" if np.isnan(ratio) else f"{ratio:.0f}" for ratio in peer_times]
        print(f"{name:<15}" + "".join(f"{cell:>17}" for cell in cells))


if __name__ == "__main__":
    main()
