"""The corruptions of ImageNet-C compared with those of imagecorruptions: time and results.

    python benchmarks/corruptions.py [--seeds 20] [--write tests/degradation/imagecorruptions.json]

Needs imagecorruptions 1.1.2 with `setuptools<81`, and scikit-image. It was written for older
libraries: three names that these no longer have are restored before it is imported.

Time: processor milliseconds of one call at 224 × 224, the median of calls in turn, one thread, and
their ratio. Results: statistics of images of 1/f noise, over seeds, which the tests compare with
ours; imagecorruptions truncates grey values and we round them, a difference of half a grey level.
"""

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core import plugins
from steadyeye.core.defaults import IMAGENET_C, IMAGENET_C_EXTRA
from steadyeye.core.spec import Spec
from steadyeye.degradation.counter_rng import stream_key
from steadyeye.degradation.operator import Context

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "fixtures"))

SEVERITIES = range(1, 6)
Corrupt = Callable[[NDArray[np.uint8], int], NDArray[np.uint8]]


def load_reference() -> ModuleType:
    """imagecorruptions, with the names that NumPy 2, SciPy and scikit-image have dropped."""
    import scipy.ndimage
    import skimage.filters

    np.float_ = np.float64  # type: ignore[attr-defined]
    sys.modules["scipy.ndimage.interpolation"] = scipy.ndimage
    gaussian = skimage.filters.gaussian

    def with_multichannel(image, *args, multichannel=None, **keywords):
        axis = {"channel_axis": -1} if multichannel else {}
        return gaussian(image, *args, **axis, **keywords)

    skimage.filters.gaussian = with_multichannel
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import imagecorruptions
    return imagecorruptions


def time_pair(first: Corrupt, second: Corrupt, severity: int, rounds: int) -> tuple[float, float]:
    """Median processor seconds of a call of each, in turn, on one image of 224 × 224."""
    from image_statistics import make_photo

    image = make_photo(0, (224, 224))
    second(image, severity)  # compiles
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for taken, corrupt, calls in zip(times, (first, second), (1, 10), strict=True):
            begun = time.process_time()
            for _call in range(calls):
                corrupt(image, severity)
            taken.append((time.process_time() - begun) / calls)
    return statistics.median(times[0]), statistics.median(times[1])


def describe_changes(corrupt: Corrupt, severity: int, seeds: int) -> list[list[float]]:
    """[mean, standard error] of each statistic over seeds, one image each."""
    from image_statistics import make_photo, measure_change

    rows = []
    for seed in range(seeds):
        np.random.seed(seed)
        image = make_photo(seed)
        rows.append(measure_change(image, corrupt(image, severity)))
    means, spread = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(seeds)
    return [[round(float(m), 3), round(float(s), 3)] for m, s in zip(means, spread, strict=True)]


def main() -> None:
    """Prints the table of times, and writes the statistics on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    cv2.setNumThreads(1)
    reference = load_reference()
    record = {}
    print(f"{'corruption':18} theirs (ms)  ours (ms)   ratio, least and most of five severities")
    for name in (*IMAGENET_C, *IMAGENET_C_EXTRA):
        operator = plugins.build("operators", Spec(name))

        def corrupt_by_reference(image, severity, name=name):
            return reference.corrupt(image, severity=severity, corruption_name=name)

        def apply_operator(image, severity, operator=operator):
            return operator.start(image, Context(stream_key(0, "photo", operator.name)))(severity)

        pairs = [
            time_pair(corrupt_by_reference, apply_operator, severity, options.rounds)
            for severity in SEVERITIES
        ]
        ratios = [first / second for first, second in pairs]
        means = [1000 * statistics.mean(column) for column in zip(*pairs, strict=True)]
        print(f"{name:18} {means[0]:11.2f} {means[1]:10.3f} {min(ratios):7.1f}–{max(ratios):.1f}")
        if options.write:
            record[name] = [
                describe_changes(corrupt_by_reference, severity, options.seeds)
                for severity in SEVERITIES
            ]
    if options.write:
        from image_statistics import NAMES

        lines = [f"{json.dumps(name)}: {json.dumps(rows)}" for name, rows in record.items()]
        header = f'"statistics": {json.dumps(NAMES)},\n"seeds": {options.seeds}'
        options.write.write_text("{" + header + ",\n" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
