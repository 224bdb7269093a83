"""`review` of set.json, which people write: valid values, and the message for others."""

import json

import pytest
from forked import refusal, steadyeye_each
from review_toys import CLASSES, GOOD, YES, Review, draw, source

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations import review_set
from steadyeye.review import database
from steadyeye.review.protocol.stages import ReviewPlan, read_plan
from steadyeye.review.workflow import queue

KINDS = {
    "null": None,
    "true": True,
    "text": "soon",
    "number": 3,
    "part": 0.5,
    "negative": -1,
    "list": [1],
    "object": {"a": 1},
    "nan": float("nan"),
    "infinite": float("inf"),
    "huge": 10**30,
}
WHOLE, NUMBERS = {"number"}, {"number", "part"}

# each entry, and what of the above it may be
ALLOWED = {
    "": set(),
    "stages": set(),
    "stages.pairs": WHOLE,
    "gold": set(),
    "gold.every": WHOLE,
    "gold.least": {"part"},
    "gold.minimum": WHOLE,
    "gold.window": WHOLE,
    "gold.answers": set(),
    "gold.answers.pairs": set(),
    "gold.answers.pairs.v0/0/1": set(),
    "quiz": set(),
    "quiz.size": set(),  # 3 are more than there are gold questions
    "quiz.least": {"part"},
    "minutes": NUMBERS,
    "seed": {"number", "negative"},
    "across_cuts": {"true"},
    "shortcut": {"true"},
    "show_offset": {"true"},
    "key_frames": WHOLE,
}


def place(path, value):
    """A plan with a value at a path, and the rest as it should be."""
    record = {"stages": {"pairs": 2}, "gold": {"answers": {"pairs": {"v0/0/1": YES}}}}
    *parents, last = path.split(".") if path else [""]
    if not path:
        return {"review": value}
    inner = record
    for key in parents:
        inner = inner.setdefault(key, {})
    inner[last] = value
    return {"review": record}


def accepts(path, kind):
    try:
        plan = read_plan(place(path, KINDS[kind]))
        list(queue.list_gold(plan.gold, CLASSES.names))
    except UsageError as error:
        line = str(error)
        assert line.startswith("set.json: review") or "no key of" in line
        assert path in line.replace("'", "") or path == "gold.answers.pairs.v0/0/1"
        assert len(line.rpartition("; ")[2]) > 10
        assert "\n" not in line
        return False
    return True


@pytest.mark.parametrize("path", ALLOWED)
def test_an_entry_of_another_type_is_refused_with_its_place_and_value(path):
    assert {kind for kind in KINDS if accepts(path, kind)} == ALLOWED[path]


def test_valid_settings_are_in_the_plan():
    settings = {"minutes": 1.5, "seed": -4, "shortcut": True, "key_frames": 3, "across_cuts": True}
    answers = {"pairs": {"v0/0/1": YES}}
    gold = {"every": 3, "least": 0.5, "minimum": 2, "window": 7, "answers": answers}
    quiz = {"size": 1, "least": 1}
    plan = read_plan({"review": {**settings, "gold": gold, "quiz": quiz, "show_offset": True}})
    assert {key: getattr(plan, key) for key in settings} == settings
    assert plan.show_offset
    assert (vars(plan.gold), vars(plan.quiz)) == (gold, quiz)
    assert read_plan({}) == read_plan({"review": {}}) == ReviewPlan(plan.votes)


@pytest.fixture
def folder(tmp_path):
    draw([source()], tmp_path / "set")
    return review_set.read(tmp_path / "set")


WRONG = {
    "[]": 'review is []; put its entries in braces, such as {"stages": …}, or leave it out',
    "null": "review is null; put its entries",
    '{"stages": [{"pairs": 1}]}': 'review.stages is [{"pairs": 1}]; put its entries in braces',
    '{"stages": {"pears": 1}}': "no key of review.stages named 'pears'; did you mean 'pairs'?",
    '{"stages": {"pairs": true}}': "review.stages.pairs is true; give a number of votes, 0 for all",
    '{"minutes": "soon"}': 'review.minutes is "soon"; give a number of minutes from 0',
    '{"minutes": NaN}': "review.minutes is NaN; give a number of minutes from 0",
    '{"minutes": 1e999}': "review.minutes is Infinity; give a number",
    '{"seed": null}': "review.seed is null; give a whole number",
    '{"gold": {"answers": []}}': "review.gold.answers is []; put its entries in braces",
    '{"gold": {"every": "x"}}': 'review.gold.every is "x"; give a whole number from 1',
    '{"gold": {"every": 0}}': "review.gold.every is 0; give a whole number from 1",
    '{"gold": {"answers": {"pairs": {"v0/0/1": "yes"}}}}': (
        'review.gold.answers.pairs is {"v0/0/1": "yes"}; give the known answer of each item'
    ),
    '{"gold": {"answers": {"boxes": {}}}}': (
        "review.gold.answers has the stage 'boxes'; choose from anchors, pairs, joint, or add it"
    ),
    '{"quiz": {"least": "all"}}': 'review.quiz.least is "all"; give a share in 0…1',
    '{"shortcut": "no"}': 'review.shortcut is "no"; say true or false',
}


def test_the_commands_refuse_a_wrong_plan_in_one_line(folder, tmp_path):
    database.connect(database.default_url(folder.root)).engine.dispose()
    commands = {}
    for number, (record, line) in enumerate(WRONG.items()):
        root = tmp_path / str(number)
        root.mkdir()
        for path in folder.root.iterdir():
            if path.name not in ("set.json", "SHA256SUMS"):
                (root / path.name).symlink_to(path)
        content = json.dumps({**folder.content, "review": 0})
        (root / "set.json").write_text(content.replace('"review": 0', f'"review": {record}'))
        words = ("review", "review-status", "review-export")[number % 3]
        more = ("--out", str(tmp_path / "out")) if words == "review-export" else ()
        commands[(words, str(root), *more)] = line
    for done in steadyeye_each(commands, tmp_path):
        assert f"set.json: {commands[done.args]}" in refusal(done)


@pytest.mark.parametrize(
    ("stage", "item", "answer", "line"),
    [
        ("pairs", "v0/0/1", {"correct": "yes"}, "similar=None; choose from yes, no, unsure"),
        ("pairs", "v0/0/1", {**YES, "similar": "no"}, "say why it is not similar"),
        ("anchors", "v0/0", {"quality": "good", "labels": ["cow"]}, "no class named 'cow'"),
        ("anchors", "v0/0", {"quality": "good", "labels": [{}]}, "labels must be a list"),
    ],
)
def test_a_gold_answer_that_its_stage_does_not_allow(folder, stage, item, answer, line):
    gold = {"answers": {stage: {item: answer}}}
    with pytest.raises(UsageError) as refusal_:
        Review(folder, gold=gold)
    start = f'set.json: review.gold.answers.{stage}, "{item}": '
    assert str(refusal_.value).startswith(f"{start}{json.dumps(answer)[:20]}")
    assert line in str(refusal_.value)


def test_a_gold_answer_to_an_item_that_is_not_there(folder):
    line = "set.json: review.gold.answers.anchors: no item 'v9/9' in this stage; give an id"
    with pytest.raises(UsageError, match=line):
        Review(folder, gold={"answers": {"anchors": {"v9/9": GOOD}}})


REST = {  # what of it may be which value
    "name": {'"x"'},
    "version": set(),
    "classes": {"null", None},
    "kind": {None},
}


@pytest.mark.parametrize("key", REST)
def test_the_rest_of_a_set_json_that_was_written_by_hand(folder, key):
    (folder.root / "SHA256SUMS").unlink(missing_ok=True)
    (folder.root / "frames.parquet").unlink()  # its labels would be of no class
    text = json.dumps({name: value for name, value in folder.content.items() if name != key})
    may_be = set()
    for value in ("null", "[]", "{}", "3.5", "1e999", '"x"', "true", '{"names": 3}', None):
        entry = "" if value is None else f", {json.dumps(key)}: {value}"
        (folder.root / "set.json").write_text(f"{text[:-1]}{entry}}}")
        try:
            review_set.read(folder.root)
        except UsageError as error:
            assert f"$.{key}" in str(error) or f"`{key}`" in str(error)  # noqa: PT017
            continue
        may_be.add(value)
    assert may_be == REST[key]


def test_a_window_holds_as_many_gold_questions_as_are_judged():
    with pytest.raises(UsageError, match=r"gold\.minimum is 9, and review\.gold\.window is 8"):
        read_plan({"review": {"gold": {"minimum": 9, "window": 8}}})
    gold = read_plan({"review": {"gold": {"window": 3}}}).gold
    assert (gold.minimum, gold.window) == (3, 3)
    assert read_plan({"review": {"gold": {"minimum": 8, "window": 8}}}).gold.minimum == 8
