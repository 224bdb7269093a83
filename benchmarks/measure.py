"""The image pass compared with decoding alone: the cost of measuring a frame.

    python benchmarks/measure.py SPEC [SPEC …] [--rounds 5] [--sets 20]

SPEC: sources with pm-sets, `"video(path='clip.mp4', anchors=20)"`. One thread, also for OpenCV;
every round decodes the first sets, then decodes and measures them, in the same order. Printed for
each source: milliseconds per frame of decoding and of the whole pass (medians over rounds), their
ratio within a round (median, lowest and highest), and the time of 23,000 frames on one thread,
about as many as ImageNet-Vid-Robust has.
"""

import argparse
import time
from itertools import groupby

import cv2
import numpy as np

from steadyeye.core import plugins
from steadyeye.core.spec import parse
from steadyeye.metrics.covariates.pm_set_measures import measure_set

FRAMES = 23_000


def sets_of(source, most):
    """The rows of the first sets, each anchor first as in the pass."""
    rows = [
        list(rows_of_set)
        for _, rows_of_set in groupby(range(len(source)), lambda i: source.members[i].group)
    ]
    return [
        sorted(members, key=lambda i: (source.members[i].offset != 0, i)) for members in rows[:most]
    ]


def seconds(action, sets):
    """How long an action takes over all sets."""
    started = time.perf_counter()
    for rows in sets:
        action(rows)
    return time.perf_counter() - started


def main():
    """Prints one line per source."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("specs", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sets", type=int, default=20)
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    for spec in arguments.specs:
        source = plugins.build("sources", parse(spec))
        sets = sets_of(source, arguments.sets)

        def decode(rows, source=source):
            for row in rows:
                source[row].image()

        def measure(rows, source=source):
            measure_set(source[row] for row in rows)

        decode(sets[0])
        pairs = np.array(
            [(seconds(decode, sets), seconds(measure, sets)) for _ in range(arguments.rounds)]
        )
        frames = sum(map(len, sets))
        alone, whole = np.median(pairs, axis=0) / frames
        ratios = pairs[:, 1] / pairs[:, 0]
        print(
            f"{spec}: {frames} frames of {source[0].image().shape[1::-1]}; decoding "
            f"{alone * 1e3:.2f} ms, the pass {whole * 1e3:.2f} ms, {np.median(ratios):.2f}× "
            f"({ratios.min():.2f}–{ratios.max():.2f}); {FRAMES:,} frames: {whole * FRAMES:.0f} s"
        )


if __name__ == "__main__":
    main()
