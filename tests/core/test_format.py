"""Words of commands as in a shell, and names from right to left."""

import subprocess

import pytest

from steadyeye.core.format import isolate, quote_word


@pytest.mark.parametrize(
    "text",
    [
        *("runs/a", "with blanks", "it's", 'a "b" c', "$HOME", "`date`", "a;b", "a&b", "a|b"),
        *("x<y>z", "[ab]*", "~", "#1", "a\\b", "ünï", "pm_k(k=10)", "video(path='a b.mp4')"),
    ],
)
def test_a_shell_takes_a_word_as_it_is(text):
    command = ["sh", "-c", f"printf %s {quote_word(text)}"]
    assert subprocess.run(command, capture_output=True, check=True).stdout.decode() == text


def test_a_spec_stays_legible():
    assert quote_word("pm_k(k='a')") == "\"pm_k(k='a')\""


@pytest.mark.parametrize(
    ("text", "isolated"),
    [
        ("predicts סירה, 85.0 %", "predicts \u2068סירה\u2069, 85.0 %"),
        ("סירת מנוע 17 → אופניים", "\u2068סירת מנוע\u2069 17 → \u2068אופניים\u2069"),
        ("درّاجة 0.90", "\u2068درّاجة\u2069 0.90"),
        ("bicycle → 自行车, 85.0 %", "bicycle → 自行车, 85.0 %"),
    ],
)
def test_names_from_right_to_left_keep_to_themselves(text, isolated):
    """A browser put the number and its comma on the other side of such a name."""
    assert isolate(text) == isolated
