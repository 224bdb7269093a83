"""What occurs more than once among many texts, without holding them."""

from collections import Counter
from collections.abc import Sequence

import numpy as np


def find_repeated_texts(texts: Sequence[str]) -> list[str]:
    """The texts that occur more than once, in the order they come first.

    Held are 8 bytes a text, not the texts: those are gone through again where two hashes are equal.
    """
    marks = np.fromiter(map(hash, texts), dtype=np.int64, count=len(texts))
    marks.sort()
    alike = set(marks[1:][marks[1:] == marks[:-1]].tolist())
    if not alike:
        return []
    times = Counter(text for text in texts if hash(text) in alike)
    return [text for text, count in times.items() if count > 1]
