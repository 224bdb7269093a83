"""Words of commands as in a shell, names from right to left, and signs of numbers."""

import subprocess

import pytest

from steadyeye.core.format import format_metric, format_metric_ends, isolate, percent, quote_word


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


def test_ends_below_zero_have_signs():
    """An interval of `map_drop` was printed as `-7.5–18.7 pp`."""
    assert format_metric_ends("map_drop(k=1)", -0.075, 0.187, "share") == "−7.5 to +18.7\u202fpp"
    assert format_metric_ends("drop in mAP", -0.187, -0.075, "share") == "−18.7 to −7.5\u202fpp"
    assert format_metric_ends("drop(k=1)", 0.0, 0.187, "share") == "0.0–18.7\u202fpp"
    assert format_metric_ends("drop(k=1)", -1e-17, 0.187, "share") == "0.0–18.7\u202fpp"
    assert format_metric("map_drop(k=1)", -0.066, "share") == "−6.6\u202fpp"
    assert percent(-0.0001) == "0.0\u202f%"
