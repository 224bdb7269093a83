"""How often a bulk acceptance is wrong, bounded exactly by a random sample of it.

The sample is drawn without replacement, so the errors in it are hypergeometric. It is looked at
in steps: the first passes without an error, the second with one at most, and so on. The steps
are laid down before the first is drawn, and share the risk of a wrong verdict (Bonferroni).
"""

from collections.abc import Sequence
from functools import cache

from scipy.stats import hypergeom

STEPS = 6
SURPLUS = 3  # errors beyond what a step allows, after which no further step is likely to pass
WORTH = 0.7  # of what is audited; an audit of more saves too little
ROUNDS = ((0.97, 0.03), (0.99, 0.02))
"""How sure the forecast must be of what is audited, and the risk, of the first audit and of a
second where the first fails; after that everything is asked. The promise holds with 95 %."""


def most_wrong(errors: int, audited: int, population: int, risk: float) -> int:
    """The most wrong ones there can be among those that were not audited.

    `errors` of the `audited`, drawn without replacement from `population`, were wrong. Exact and
    one-sided: with more wrong ones, so few errors would be rarer than `risk`.
    """
    low, high = errors, errors + population - audited
    while low < high:
        middle = (low + high + 1) // 2
        if hypergeom.cdf(errors, population, middle, audited) > risk:
            low = middle
        else:
            high = middle - 1
    return low - errors


@cache
def sizes(population: int, accepted: int, most: float, risk: float) -> Sequence[int]:
    """How many are audited by each step; step c, from 0, passes with c errors or fewer.

    `accepted`: those accepted by people besides; of them and of the `population` together at most
    a share `most` is then wrong, but for a `risk` that all steps share.
    """
    return tuple(
        _size(errors, population, int(most * (accepted + population - errors)), risk / STEPS)
        for errors in range(STEPS)
    )


def _size(errors: int, population: int, allowed: int, risk: float) -> int:
    """The smallest sample that with so many errors shows no more than `allowed` to be left."""
    low, high = min(errors + 1, population), population
    while low < high:
        middle = (low + high) // 2
        if most_wrong(errors, middle, population, risk) <= allowed:
            high = middle
        else:
            low = middle + 1
    return low


def verdict(errors: int, step: int, planned: Sequence[int], population: int) -> str:
    """What follows from the `errors` found by a `step`: pass, more (the next step), or fail."""
    if errors <= step:
        return "pass"
    further = step + 1
    hopeless = errors > step + SURPLUS
    if hopeless or further == len(planned) or not worth(planned[further], population):
        return "fail"
    return "more"


def worth(audited: int, population: int) -> bool:
    """Whether an audit of that size leaves enough that need not be asked."""
    return audited <= WORTH * population
