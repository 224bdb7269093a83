"""How often a bulk acceptance is wrong, bounded exactly by a random sample of it."""

from scipy.stats import hypergeom

LEVEL = 0.95


def most_wrong(errors: int, audited: int, population: int, level: float = LEVEL) -> float:
    """The upper confidence bound of the share of wrong ones among those that were not audited.

    `errors` of the `audited`, drawn without replacement from `population`, were wrong. Exact: the
    largest number of wrong ones under which so few errors are not rarer than 1 − `level`
    (hypergeometric; one-sided).
    """
    rest = population - audited
    if not rest:
        return 0.0
    low, high = errors, errors + rest
    while low < high:
        middle = (low + high + 1) // 2
        if hypergeom.cdf(errors, population, middle, audited) > 1 - level:
            low = middle
        else:
            high = middle - 1
    return (low - errors) / rest


def sample_size(population: int, most: float, level: float = LEVEL) -> int | None:
    """The smallest audit that, finding no error, shows at most a share `most` to be wrong.

    None where only asking them all would.
    """
    low, high = 1, population
    while low < high:
        middle = (low + high) // 2
        if most_wrong(0, middle, population, level) <= most:
            high = middle
        else:
            low = middle + 1
    return low if low < population else None
