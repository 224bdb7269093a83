"""One line for the faults of a file, however many there are."""

import pytest

from steadyeye.core.errors import MOST_FAULTS, UsageError, every


def refuse_odd(number):
    if number % 2:
        raise UsageError(f"{number} is odd")
    return -number


def test_all_items_are_read_and_the_faults_counted():
    assert every([2, 4], refuse_odd) == [-2, -4]
    with pytest.raises(UsageError, match=r"^1 is odd \(faults of this file or folder: 3\)$"):
        every([0, 1, 2, 3, 5], refuse_odd)


def test_reading_ends_after_many_faults():
    read = []

    def note(number):
        read.append(number)
        return refuse_odd(number)

    with pytest.raises(UsageError, match=r"\(faults of this file or folder: over 1,000\)$"):
        every(range(10**6), note)
    assert len(read) == 2 * (MOST_FAULTS + 1)
