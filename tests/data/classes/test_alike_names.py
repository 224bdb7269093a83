"""Class names that differ in case, blanks or Unicode form: matched if the meaning is clear."""

from pathlib import Path

import pytest

from steadyeye.core.errors import UsageError
from steadyeye.data.classes.class_lists import classes_of_names, from_names
from steadyeye.data.classes.matching import same_names
from steadyeye.data.classes.synonyms import match_class

ONE, TWO = "caf\u00e9", "cafe\u0301"
"""The same letters, of one character and of two."""


def match(source, target):
    """The target's class of each of the source, or None."""
    matches = same_names(source, target)
    return [target[matches[at]] if at in matches else None for at in range(len(source))]


def test_accents_are_the_same_in_both_forms():
    assert match([ONE, "tea"], [TWO, "tea"]) == [TWO, "tea"]
    assert match([TWO.upper()], [ONE]) == [ONE]
    assert match_class(ONE, [TWO, "tea"]) == TWO


def test_case_counts_only_where_names_differ_in_nothing_else():
    assert match(["CARDIGAN"], ["cardigan"]) == ["cardigan"]
    both = ["Cardigan", "cardigan"]
    assert match(both, both) == both
    assert match(["CARDIGAN"], both) == [None], "nobody knows which is meant"
    assert match(both, ["cardigan"]) == [None, "cardigan"], "the dog is no garment"
    assert match(both, ["CARDIGAN"]) == [None, None]
    assert match(["traffic_light"], ["Traffic  light"]) == ["Traffic  light"]


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (["a\nb", "c"], r"the class 'a b' holds '\n', which is no letter; take it out"),
        (["a\x00b", "c"], r"holds '\x00'"),
        ([ONE, TWO], "look the same: they differ only in blanks or in the Unicode form"),
        (["dark", "dark\u00a0"], "look the same"),
        ([" ", "c"], "class 1 has neither name nor wnid"),
    ],
)
def test_names_that_cannot_be_distinguished_are_refused(names, line):
    with pytest.raises(UsageError) as error:
        from_names(names)
    assert line in str(error.value)


def test_the_file_is_named_that_holds_them():
    for names in (["a\x7f", "c"], [ONE, TWO]):
        with pytest.raises(UsageError, match=r"^'annotations': the class"):
            classes_of_names(dict.fromkeys(names), Path("annotations"))


def test_commas_quotes_and_case_are_no_reason():
    names = ("tench, Tinca tinca", 'the "best"', "cat's", "Cardigan", "cardigan", "日本")
    assert classes_of_names(dict.fromkeys(names)).names == names
