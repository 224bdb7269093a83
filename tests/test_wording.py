"""Texts that a user reads keep to docs/explanation/style.md: banned phrases, % and points.

Those in the source are read in test_words, those of reports in test_titles.
"""

import re
from importlib import import_module

import pytest
from conftest import ROOT
from typer.main import get_command

from steadyeye.cli import COMMANDS
from steadyeye.cli.options import app

SOURCE = ROOT / "src" / "steadyeye"

BANNED = {
    r"\bt(old|ell\w*) (them |models |\w+ )?apart\b": "no clear difference",
    r"the further one|as far as (its|the) labels|as far as .{0,30}\bcan tell": "say what is meant",
    r"\bheld (example|image|frame|box|video)s?\b": "held-out data",
    r"[Cc]hanges? of mind": "prediction changes",
    r"changes? (its|of) answers?\b": "changes its prediction",
    r"[Nn]o difference (is )?(shown|between)|difference (from \S+ )?is shown": "clear difference",
    r"\b(is|are) shown to be\b": "is clearly",
    r"Holm's (allowance|correction)": "adjusted by Holm",
    r"beyond chance|may be chance": "a clear difference",
    r"\bbelieve\b": "nothing: readers judge for themselves",
    r"\b(stands?|shown|put|set) beside\b": "next to, compared with",
    r"nobody would notice": "cannot be detected",
    r"\bmend (it|them|the)\b": "correct, fix",
    r"\d\s*points\b|difference, points|by \(?points": "percentage points, pp",
    r"\b(is → says|says → is)\b": "label → prediction",
    r"(reference|it) is thin\b": "sparse",
    r"there is no before": "the base model cannot be compared",
    r"neighbou?r\w* (frames )?take": "the drop",
    r"drawn anew|begin(s|ning)? anew": "random weights; start again",
    r"the model itself says|what it says of|judges? itself": "predicts",
}
"""What is not written → what is. The reasons: docs/explanation/style.md."""

CHANGE_IN_PERCENT = re.compile(
    r"\b(drops?|dropped|rises?|rose|falls?|fell|higher|lower|better|worse|gains?|loses?) by "
    r"[+−]?\d[\d.]*\s*%"
)
PERCENT = re.compile(r"\d\s*%")


def faults(text):
    """The banned phrases in a text, and changes of percentages that are written in "%"."""
    line = " ".join(text.split())
    hits = [match[0] for banned in BANNED for match in [re.search(banned, line)] if match]
    return hits + [match[0] for match in [CHANGE_IN_PERCENT.search(line)] if match]


def mixed(header, rows):
    """The columns of a table that hold both percentages and percentage points.

    Where each row names its metric first, the rows of one metric are looked at together.
    """
    if header[0] == "metric":
        metrics = dict.fromkeys(row[0] for row in rows)
        parts = [[row[1:] for row in rows if row[0] == metric] for metric in metrics]
        return list(dict.fromkeys(name for part in parts for name in mixed(header[1:], part)))
    columns = [[str(row[i]) for row in rows if i < len(row)] for i in range(len(header))]
    return [
        name
        for name, cells in zip(header, columns, strict=True)
        if ("(pp)" in name or any(re.search(r"\bpp\b", cell) for cell in cells))
        and any(PERCENT.search(cell) for cell in cells)
    ]


def commands(command, name="steadyeye"):
    """(name, help) of a command with its options, and of all below it."""
    helps = [command.help, *(getattr(parameter, "help", None) for parameter in command.params)]
    yield name, " ".join(filter(None, helps))
    for below, subcommand in getattr(command, "commands", {}).items():
        yield from commands(subcommand, f"{name} {below}")


@pytest.mark.parametrize(
    "text",
    [
        "these models cannot be told apart",
        "accuracy on the held examples",
        "No difference between a and b is shown on accuracy",
        "better by 20.0 points (9.5 to 34.8)",
        "its accuracy drops by 3.1\u202f%",
        "Believe it? I believe it as far as its labels go",
        "p ≤ 0.05 after Holm's allowance for five pairs",
        "m changes its answer every 0.2 s",
    ],
)
def test_a_fault_is_found(text):
    assert faults(text)


@pytest.mark.parametrize(
    "text",
    [
        "No clear difference in accuracy between a and b (95 % interval −2.1 to +6.3 includes 0)",
        "better by 20.0 percentage points (9.5 to 34.8)",
        "a relative drop of 12.0\u202f% in mAP",
        "the failure points of three models",
        "accuracy falls below 50\u202f%",
    ],
)
def test_texts_that_follow_the_guide_have_no_fault(text):
    assert not faults(text)


def test_a_column_of_two_units_is_found():
    assert mixed(("model", "drop (pp)"), [("a", "12.5"), ("b", "3.1\u202f%")]) == ["drop (pp)"]
    assert mixed(("model", "difference"), [("a", "12.5 pp"), ("b", "3.1\u202f%")]) == ["difference"]
    drops = [("drop", "a", "12.5 pp"), ("drop", "b", "3.1\u202f%"), ("accuracy", "a", "9\u202f%")]
    assert mixed(("metric", "model", "value"), drops) == ["value"]
    assert not mixed(("metric", "model", "value"), [drops[0], drops[2]])
    assert not mixed(("accuracy", "drop (pp)"), [("12.5\u202f%", "3.1"), ("9\u202f%", "—")])


def test_pages_keep_to_the_guide():
    pages = [*SOURCE.rglob("templates/*.html"), *SOURCE.rglob("static/*.js")]
    assert len(pages) > 10
    # the charts' script is bundled, not written by us
    own = [page for page in pages if page.name != "vega.js"]
    assert not [(page.name, hits) for page in own if (hits := faults(page.read_text("utf-8")))]


def test_help_keeps_to_the_guide():
    for name in COMMANDS:
        import_module(f"steadyeye.cli.{name}")
    helps_by_name = dict(commands(get_command(app)))
    assert {"steadyeye run", "steadyeye gate", "steadyeye cache prune"} <= set(helps_by_name)
    assert not [(name, hits) for name, text in helps_by_name.items() if (hits := faults(text))]
    # rich takes [all] for markup and prints nothing of it
    assert not [name for name, text in helps_by_name.items() if re.search(r"\[[a-z]", text)]


def options(command, name="steadyeye"):
    """(name, option) of a command and of all below it."""
    for parameter in command.params:
        if parameter.param_type_name == "option":
            yield f"{name} {parameter.opts[0]}", parameter
    for below, subcommand in getattr(command, "commands", {}).items():
        yield from options(subcommand, f"{name} {below}")


def test_help_is_a_sentence_and_says_which_options_may_be_repeated():
    for name in COMMANDS:
        import_module(f"steadyeye.cli.{name}")
    every = dict(options(get_command(app)))
    assert len(every) > 200
    for name, option in every.items():
        text = option.help
        assert text.endswith("."), name
        assert text[0].isupper() or text.split()[0] in ("labels.csv", "http(s)"), name
        may_repeat = re.search("may be (repeated|given twice)", text) is not None
        assert may_repeat == option.multiple, name


def prose(page):
    """A page without its blocks of commands and output, which test_tutorials compares."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)


def test_docs_keep_to_the_guide():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    assert len(pages) > 20
    # the guide itself shows what is not written
    own = [page for page in pages if page.name != "style.md"]
    assert not [(page.name, hits) for page in own if (hits := faults(prose(page)))]
