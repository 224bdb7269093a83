from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec, parse, split

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(lambda n: n.isidentifier())


@given(names, st.dictionaries(names, values, max_size=4))
@settings(max_examples=25)
def test_a_spec_is_parsed_back_from_its_text(name, kwargs):
    import keyword

    if keyword.iskeyword(name) or any(keyword.iskeyword(key) for key in kwargs):
        return
    spec = Spec(name, kwargs)
    assert parse(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("pm_k(10)", "arguments must be named"),
        ("pm_k(k=ten)", "not a literal"),
        ("pm_k(k=", "never closed"),
        ("import os", "invalid syntax"),
        ("a.b(k=1)", "neither a name nor a name with arguments"),
        ("pm_k(**{'k': 1})", "not allowed"),
        ("pm_k(k=__import__('os'))", "not a literal"),
    ],
)
def test_an_invalid_spec_is_refused_in_one_line(text, why):
    with pytest.raises(UsageError, match=why) as error:
        parse(text)
    assert "\n" not in str(error.value)


def test_split_keeps_commas_inside_calls():
    assert split("accuracy, pm_k(k=5)") == [Spec("accuracy"), Spec("pm_k", {"k": 5})]
    assert split("") == []


def test_long_texts_are_split_in_linear_time():
    start = process_time()
    text = "a(b='" + "\\\\" * 200_000 + "'), c"
    assert [spec.name for spec in split(text)] == ["a", "c"]
    assert process_time() - start < 5  # 0.1 s; going back from each letter took a minute
