"""Comparisons in words: differences with their intervals, and what was found."""

from steadyeye.core.claims import Claim, above, every, first
from steadyeye.core.format import number_of
from steadyeye.report.comparison.ranking import Leaderboard, ModelPair

MOST = 4
"""Pairs that a sentence names."""

CALLED = {
    "flip_rate": "flip rate",
    "degraded_accuracy": "degraded accuracy",
    "degraded_rank": "degraded rank",
    "degraded_probability": "degraded probability",
    "map": "mAP",
    "map_without_ood": "mAP without OOD",
    "mar": "mAR",
    "map_drop": "mAP drop",
    "confident_mistakes": "confident mistakes",
    "misclassification": "wrong class",
    "out_of_distribution": "out of distribution",
    "random_neighbour": "random neighbour",
}


def name_metric(metric: str) -> str:
    """A metric as prose names it: `pm_k(k=10)` is pm-10."""
    name, _, rest = metric.partition("(")
    k = rest.partition("k=")[2].partition(",")[0].rstrip(")")
    if name == "pm_k":
        return f"pm-{k}"
    if name == "pm_k_map":
        return f"pm-{k} mAP"
    return CALLED.get(name, name)


def amount(value: float, unit: str, brief: bool = False) -> str:
    """A difference with its unit: percentage points of shares, ranks of ranks; `brief`: pp."""
    number = _number(value, unit).removeprefix("+")
    share = "pp" if brief else "percentage points"
    return f"{number} {share if unit == 'share' else 'ranks'}"


def reach(low: float, high: float, unit: str) -> str:
    """The interval of a difference: `3.1 to 37.4`, with signs where it holds 0."""
    ends = [_number(end, unit) for end in (low, high)]
    if low > 0:
        ends = [end.removeprefix("+") for end in ends]
    return " to ".join(ends)


def sentence(pair: ModelPair, board: Leaderboard) -> str:
    """What was found of two models."""
    name = name_metric(board.metric)
    if not pair.apart:
        return f"no clear difference in {name} between {pair.better} and {pair.worse}"
    gap, unit = pair.difference, board.unit
    return (
        f"{pair.better} has a better {name} than {pair.worse}, by "
        f"{amount(gap.value, unit)} ({reach(gap.low, gap.high, unit)})"
    )


def finding(board: Leaderboard) -> str:
    """What was found of all pairs, in one or two sentences; differences that are shown first."""
    apart, tied = board.apart, tuple(pair for pair in board.pairs if not pair.apart)
    name = name_metric(board.metric)
    if not apart and len(board.standings) > 2:
        return (
            f"No clear difference in {name} between any two of "
            f"{number_of(len(board.standings), 'model')}."
        )
    told = [sentence(pair, board) for pair in apart[:MOST]]
    if len(apart) > MOST:
        told.append(f"{len(apart) - MOST} more pairs differ clearly")
    if tied and len(tied) <= MOST:
        names = ", or between ".join(f"{pair.better} and {pair.worse}" for pair in tied)
        told.append(f"no clear difference in {name} between {names}")
    elif tied:
        told.append(f"no clear difference for {len(tied)} of {number_of(len(board.pairs), 'pair')}")
    said = "; ".join(told)
    return f"{said[:1].upper() if said.startswith('no clear') else said[:1]}{said[1:]}."


def headline(board: Leaderboard) -> str:
    """The finding as a title: what is shown of the pairs, else a question."""
    shown = claim(board)
    if shown is not None:
        return shown.text
    several = "two" if len(board.standings) == 2 else f"{len(board.standings)}"
    return f"Do the {several} models differ in {name_metric(board.metric)}? No clear difference"


def claim(board: Leaderboard) -> Claim | None:
    """What a title may assert: that the pairs differ whose adjusted p values show it."""
    text = _state_differences(board)
    pairs = [above(text, pair.difference, p=pair.adjusted) for pair in board.apart]
    return first([every(text, pairs)])


def _state_differences(board: Leaderboard) -> str:
    apart, name = board.apart, name_metric(board.metric)
    best = board.standings[0]
    if sum(pair.better == best.model for pair in apart) == len(board.standings) - 1:
        others = "all others" if len(board.standings) > 2 else board.standings[1].model
        return f"{best.model} has a better {name} than {others}"
    if len(apart) == 1:
        return f"{apart[0].better} has a better {name} than {apart[0].worse}"
    return (
        f"{len(apart)} of {number_of(len(board.pairs), 'pair')} of models differ clearly in {name}"
    )


def rank(board: Leaderboard, place: int) -> str:
    """The rank of a standing, with `=` where another model shares it."""
    own = board.standings[place].rank
    shared = sum(each.rank == own for each in board.standings) > 1
    return f"{own}=" if shared else f"{own}"


def _number(value: float, unit: str) -> str:
    text = f"{value * 100:+.1f}" if unit == "share" else f"{value:+.2f}"
    return text.replace("-", "−")
