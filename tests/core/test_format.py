"""Words of commands, as a shell takes them."""

import subprocess

import pytest

from steadyeye.core.format import quote_word


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
