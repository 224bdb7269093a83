"""Cost of finding blind spots: exact neighbours, the permutation null, the spots.

    python benchmarks/blind_spots.py [--reference 20000] [--data 20000] [--dimensions 1280]

Vectors of two sets as EfficientNet-Lite0 gives them, 1,280 numbers each, from a mixture of 40
clouds of which the reference has next to none of one. Every vector is an image of its own, which is
the most work: no group makes the table of distances narrower. What is left is the embedding itself,
some 7 ms a crop, and the map, which takes a fixed number of points.
"""

import argparse
import resource
import time

import numpy as np
from numpy.typing import NDArray

from steadyeye.explain.embedding.blind_spots import spots
from steadyeye.explain.embedding.density_ratio import space, thinness

CLOUDS, LATENT, HOLE = 40, 12, 7


def vectors(n: int, dimensions: int, lacking: bool, seed: int) -> NDArray[np.float32]:
    """(n, dimensions) float32, above 0 as after a ReLU; `lacking`: next to none of one cloud."""
    rng = np.random.default_rng(seed)
    shape = np.random.default_rng(0)
    middles, lift = shape.normal(size=(CLOUDS, LATENT)), shape.normal(size=(LATENT, dimensions))
    weight = np.ones(CLOUDS)
    weight[HOLE] = 0.02 if lacking else 2
    cloud = rng.choice(CLOUDS, n, p=weight / weight.sum())
    latent = 2 * middles[cloud] + rng.normal(size=(n, LATENT))
    return np.maximum(latent @ lift, 0).astype(np.float32)


def main() -> None:
    """Prints seconds, memory and what was found."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--reference", type=int, default=20_000)
    options.add_argument("--data", type=int, default=20_000)
    options.add_argument("--dimensions", type=int, default=1_280)
    arguments = options.parse_args()
    sets = [
        vectors(arguments.reference, arguments.dimensions, True, 1),
        vectors(arguments.data, arguments.dimensions, False, 2),
    ]
    both = np.concatenate(sets)
    of_reference = np.arange(len(both)) < arguments.reference
    names = np.array([f"{i:07}" for i in range(len(both))])
    start, worked = time.perf_counter(), time.process_time()
    points = space(both)
    placed = time.perf_counter()
    densities = thinness(points, names, of_reference)
    judged = time.perf_counter()
    spot = spots(points[~of_reference][densities.thin])
    ended = time.perf_counter()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{arguments.reference:,} + {arguments.data:,} vectors of {arguments.dimensions:,}, "
        f"k = {densities.k}"
    )
    print(f"space       {placed - start:6.1f} s")
    print(f"density     {judged - placed:6.1f} s")
    print(f"spots       {ended - judged:6.1f} s")
    busy = time.process_time() - worked
    print(f"in all      {ended - start:6.1f} s ({busy:.1f} s of a core), {memory:,.0f} MB at most")
    print(
        f"{int(densities.thin.sum()):,} thin, {int(spot.max(initial=-1)) + 1} spots, "
        f"p {densities.chance}"
    )


if __name__ == "__main__":
    main()
