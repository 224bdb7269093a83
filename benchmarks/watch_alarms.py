"""False alarms of `steadyeye watch` over 1,000 simulated days, by what frames depend on.

Of one object in view, at 5 frames a second: it is lost in runs of frames, of a mean length, and its
rate over all time is exactly the 5 % that is promised, so that every alarm is a false one. Of more
objects blocks vary less. One false alarm in 20 days is promised: 50 in all, at most, are expected.

    python benchmarks/watch_alarms.py
"""

import numpy as np

from steadyeye.core.stats.confidence_sequence import BETS, add_evidence

DAYS, FPS, LIMIT, PROMISED = 1_000, 5, 0.05, 20
FULL_DAY = 86_400
RUNS = (0.2, 0.5, 1.0, 3.0, 10.0)
"""Seconds of a blink, on average; 0.2: frames are independent of each other but for chance."""
BLOCKS = (10, 30, 60)


def count_alarms(run: float, block: int, seed: int = 0) -> int:
    """Alarms in all days, of blinks that last `run` seconds on average, in blocks of `block`."""
    rng = np.random.default_rng(seed)
    leave = 1 / (run * FPS)
    enter = leave * LIMIT / (1 - LIMIT)
    independent = run * FPS <= 1
    lost = rng.random(DAYS) < LIMIT
    evidence = np.zeros((len(BETS), DAYS))
    every = PROMISED * FULL_DAY / block
    alarms = 0
    for _ in range(FULL_DAY // block):
        chances = rng.random((block * FPS, DAYS), dtype=np.float32)
        if independent:
            share = (chances < LIMIT).mean(axis=0)
        else:
            total = np.zeros(DAYS)
            for row in chances:
                lost = np.where(lost, row >= leave, row < enter)
                total += lost
            share = total / (block * FPS)
        evidence = add_evidence(evidence, share, LIMIT)
        is_raised = evidence.mean(axis=0) >= every
        alarms += int(is_raised.sum())
        evidence[:, is_raised] = 0
    return alarms


def main() -> None:
    """Prints a row for each mean length of a blink."""
    print(f"false alarms in {DAYS:,} days, at most {DAYS // PROMISED} promised")
    print("blink (s)", *(f"blocks of {block} s" for block in BLOCKS), sep="  ")
    for run in RUNS:
        print(
            f"{run:9g}",
            *(f"{count_alarms(run, block):14,}" for block in BLOCKS),
            sep="  ",
            flush=True,
        )


if __name__ == "__main__":
    main()
