"""Every registered parser with a few damaged files; `make fuzz` tries a thousand each."""

from random import Random

import fuzzing
import mutations
import pytest

from steadyeye.core.errors import UsageError

PARSERS = fuzzing.find_parsers()


@pytest.mark.parametrize("name", PARSERS)
def test_damaged_files_are_refused_in_one_line(name):
    parser = PARSERS[name]
    cases = max(parser.cases, len(parser.files))
    outcome = fuzzing.try_parser(parser, cases)
    assert outcome.cases == cases + len(parser.known_faults)
    assert not outcome.faults, "\n\n".join("\n".join(fault) for fault in outcome.faults)


def write_example(folder):
    (folder / "a.json").write_text('{"a": [1, 2, {"b": "c"}]}')
    (folder / "a.csv").write_text("a,b\n1,2\n3,4\n")
    (folder / "a.toml").write_text('a = 1\nb = "c"\n')


FORMS = {"*.json": "json", "*.csv": "csv", "*.toml": "lines"}


def test_a_case_depends_on_its_number_alone(tmp_path):
    write_example(tmp_path)
    parser = fuzzing.Parser("example", write_example, lambda folder: None, FORMS)
    cases = [fuzzing.make_case(parser, tmp_path, number) for number in range(300)]
    assert cases[::-1] == [fuzzing.make_case(parser, tmp_path, n) for n in range(299, -1, -1)]
    assert {case.file for case in cases} == {"a.json", "a.csv", "a.toml"}
    unchanged = [c for c in cases if c.content == (tmp_path / c.file).read_bytes()]
    assert len(unchanged) < 60


def test_no_form_leaves_the_files_it_is_for():
    for form, text in {
        "json": b"[1]",
        "csv": b"a,b\n",
        "lines": b"a = 1\n",
        "bytes": b"",
        "numbers": b'{"a": [1]}',
    }.items():
        for seed in range(300):
            content, words = mutations.mutate(text, form, Random(seed))
            assert isinstance(content, bytes)
            assert words


def end(folder):
    import os

    os.abort()


def turn(folder):
    while True:
        pass


def fill(folder):
    # far above the limit: the kernel may take pages of libraries from the process meanwhile
    return b"1" * 2**28


def warn(folder):
    import numpy as np

    np.array(1e38, np.float32) * np.float32(1e38)


def raise_error(text):
    def read(folder):
        raise UsageError(text.format(folder=folder))

    return read


@pytest.mark.parametrize(
    ("read", "kind", "words"),
    [
        (end, "traceback", "the process ended with -6"),
        (turn, "hang", "no end"),
        (fill, "memory", ""),
        (warn, "traceback", "RuntimeWarning"),
        (lambda folder: {}["key"], "traceback", "KeyError"),
        (raise_error("bad"), "traceback", "names no file"),
    ],
)
def test_each_kind_of_fault_is_seen(read, kind, words, monkeypatch):
    monkeypatch.setattr(fuzzing, "SECONDS", 0.5 if kind == "hang" else 60)
    monkeypatch.setattr(fuzzing, "MEMORY", 2**26)  # a gigabyte takes seconds to fill
    monkeypatch.setattr(fuzzing, "_check_examples", lambda *_: None)
    outcome = fuzzing.try_parser(fuzzing.Parser("example", write_example, read, FORMS), 1)
    assert [fault[0] for fault in outcome.faults] == [kind]
    assert words in outcome.faults[0][2]


def test_a_crash_ends_no_other_case(monkeypatch):
    monkeypatch.setattr(fuzzing, "BATCH", 10)

    def read(folder):
        if b"1" not in (folder / "a.toml").read_bytes():
            end(folder)

    parser = fuzzing.Parser("example", write_example, read, {"a.toml": "lines"})
    outcome = fuzzing.try_parser(parser, 24)
    assert outcome.cases == 24
    assert 1 < outcome.count("traceback") < 24 == outcome.accepted + len(outcome.faults)


def test_the_table_has_a_line_a_parser():
    outcomes = [
        fuzzing.try_parser(p, 5)
        for p in (
            fuzzing.Parser("plain", write_example, lambda folder: None, FORMS),
            fuzzing.Parser("strict", write_example, lambda folder: None, FORMS),
        )
    ]
    lines = fuzzing.write_table(outcomes).splitlines()
    assert lines[2].startswith("| plain | 0 | 5 | 0 | ")
    assert lines[-1].startswith("| all | 0 | 10 | 0 | ")
