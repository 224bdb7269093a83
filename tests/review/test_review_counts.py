"""Counts of a review, against a count straight from the votes."""

import json
import random

import pytest
from forked import steadyeye
from review_toys import CLASSES, GOOD, NO, YES, Review, draw, source
from sqlalchemy import text

from steadyeye.data.annotations import review_set
from steadyeye.review.interchange.frames import export_set
from steadyeye.review.results import status
from steadyeye.review.results.recount import check_counts
from steadyeye.review.sampling.sampling import Sampling

ANCHORS = [
    GOOD,
    {"quality": "good", "labels": ["cat", "dog"]},
    {"quality": "bad", "labels": []},
    {"quality": "unsure", "labels": ["dog"]},
]
PAIRS = [YES, YES, NO, {"correct": "no", "similar": "yes"}, {"correct": "yes", "similar": "unsure"}]


def rows(review, table):
    """The rows of a table in their order; JSON as it is stored."""
    with review.db.reading() as connection:
        chosen = text(f"SELECT * FROM {table} ORDER BY id")
        return connection.execute(chosen).mappings().all()


def load(value):
    """What a column of JSON holds; PostgreSQL's driver has read it already."""
    return json.loads(value) if isinstance(value, str) else value


def most(votes):
    return 2 * sum(votes) > len(votes)


def by_the_votes(review):
    """(reviewed, accepted) anchors and pairs, and anchors with other labels, from the tables."""
    last = {}
    for row in rows(review, "decisions"):
        last[row["item"], row["reviewer"]] = row
    votes = {}
    for row in last.values():
        if row["kind"] == "answer":
            votes.setdefault(row["item"], []).append(load(row["answer"]))
    items_of = {(row["stage"], row["key"]): row for row in rows(review, "items")}

    def heard(stage, key):
        """The votes on an item, None while there are too few, and whether its answer was known."""
        row = items_of.get((stage, key))
        if row is None or row["state"] == "withdrawn":
            return None, False
        if row["gold"] is not None:
            return [load(row["gold"])], True
        answers = votes.get(row["id"], [])
        return (answers if len(answers) >= row["needed"] else None), False

    def good(answers):
        label_lists = [a["labels"] for a in answers if a["quality"] == "good"]
        if not most([a["quality"] == "good" for a in answers]):
            return None
        return {
            name for name in ("cat", "dog") if most([name in labels for labels in label_lists])
        } or None

    anchors, pairs, updated = [], [], 0
    for (stage, key), row in items_of.items():
        replies, known = heard(stage, key)
        if stage == "anchors" and replies is not None and not known:
            labels = good(replies)
            anchors.append(labels is not None)
            updated += labels is not None and labels != {"cat"}
        if stage == "pairs" and replies is not None and not known:
            anchor, _ = heard("anchors", row["unit"])
            if anchor is None or good(anchor) is None:
                continue
            if any((a["correct"], a["similar"]) != ("yes", "yes") for a in replies):
                replies, known = heard("joint", key)
                if replies is None or known:
                    continue
            pairs.append(
                all(most([a[q] == "yes" for a in replies]) for q in ("correct", "similar"))
            )
    return (len(anchors), sum(anchors)), (len(pairs), sum(pairs)), updated


def answer_at_random(review, draws, number, stage):
    served = review.next(stage, number)
    if not served:
        return
    answer = draws.choice(ANCHORS if stage == "anchors" else PAIRS)
    comment = draws.choice(["", "hard to see"])
    decision = review.say(served[0], answer, number, comment=comment)
    if draws.random() < 0.15:
        review.undo(decision, number)


def compare(review):
    anchors, pairs, updated = by_the_votes(review)
    with review.db.reading() as c:
        summary = status.summarise(c, review.folder, review.plan)
    by_stage = {row["stage"]: row for row in summary["table"]}
    numbers = [(by_stage[s]["reviewed"], by_stage[s]["accepted"]) for s in ("anchors", "pairs")]
    assert numbers == [anchors, pairs]
    assert by_stage["anchors"]["updated"] == updated
    assert [(row["reviewed"], row["accepted"]) for row in summary["table_one"]] == [
        anchors,
        (None, updated),
        pairs,
    ]
    for line in by_stage.values():
        # one that is rejected for two reasons counts for both
        assert sum(line["reasons"].values()) >= line["reviewed"] - line["accepted"]
    with review.db.reading() as c:
        assert check_counts(c, review.plan) == []
    return summary, by_stage


@pytest.mark.slow
@pytest.mark.parametrize(("anchors", "pairs"), [(1, 2), (3, 1)])
def test_every_count_is_that_of_the_votes(tmp_path, anchors, pairs):
    """Several reviewers, gold questions, doubts, votes taken back and anchors that change."""
    draws = random.Random(anchors)
    draw([source(4)], tmp_path / "set", Sampling("set", {}, CLASSES))
    folder = review_set.read(tmp_path / "set")
    frames = folder.frames.to_pylist()
    gold = {
        "anchors": {r["group"]: draws.choice(ANCHORS) for r in draws.sample(frames, 2)},
        "pairs": {
            r["id"]: draws.choice([YES, NO])
            for r in draws.sample([r for r in frames if r["offset"]], 5)
        },
    }
    review = Review(
        folder,
        3,
        stages={"anchors": anchors, "pairs": pairs},
        gold={"every": 3, "least": 0.0, "answers": gold},
    )
    for step in range(120):
        stage = draws.choice(["anchors", "pairs", "pairs", "joint", "joint"])
        answer_at_random(review, draws, draws.randrange(3), stage)
        if step in (20, 70):
            compare(review)
    summary, by_stage = compare(review)
    assert by_stage["pairs"]["gold"] == 5
    with review.db.reading() as c:
        counts = export_set(c, folder, review.plan, tmp_path / "out", partial=True)
    content = json.loads((tmp_path / "out" / "set.json").read_text())
    assert content["reviewed"]["status"]["table_one"] == summary["table_one"]
    assert counts["labels_updated"] == by_stage["anchors"]["updated"]


def test_gold_questions_are_no_review(tmp_path):
    """Of 12 pairs three have known answers: 9 are reviewed, though all get two answers."""
    draw([source(3)], tmp_path / "set", Sampling("set", {}, CLASSES))
    folder = review_set.read(tmp_path / "set")
    known = {row["id"]: YES for row in folder.frames.to_pylist()[1:5] if row["offset"]}
    gold = {"every": 1, "least": 0.0, "answers": {"pairs": known}}
    planned = {"stages": {"pairs": 2}, "gold": gold}
    manifest = folder.root / "set.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "review": planned}))
    (folder.root / "SHA256SUMS").unlink()  # the change is meant
    review = Review(folder, 2, **planned)
    counts = [len(review.everything("pairs", lambda _: YES, number)) for number in (0, 1)]
    assert counts == [12, 12]
    with review.db.reading() as c:
        summary = status.summarise(c, folder, review.plan)
    assert len(known) == 3
    assert summary["table"][0] == {
        **{"stage": "pairs", "reviewed": 9, "accepted": 9, "gold": 3},
        "reasons": {},
    }
    assert [(e["item"], e["reviewed"], e["accepted"]) for e in summary["table_one"]] == [
        ("frame pairs", 9, 9)
    ]
    assert summary["agreement"][0]["n"] == 9
    assert summary["stages"][0]["done"] == 9
    printed = steadyeye("review-status", folder.root, *review.option).stdout
    (line,) = [line for line in printed.splitlines() if "frame pairs" in line]
    words = line.split()
    assert words[:2] == ["100.0", "%"]
    assert " ".join(words).endswith("9 9 frame pairs Gaffke's bounds over 3 videos")


def test_a_check_of_changed_counts_says_what_is_still_right_and_what_to_do(tmp_path):
    draw([source(1)], tmp_path / "set", Sampling("set", {}, CLASSES))
    folder = review_set.read(tmp_path / "set")
    review = Review(folder, 1)
    command = ("review-status", folder.root, "--check", *review.option)
    assert "the stored counts equal a recount" in steadyeye(*command).stdout
    with review.db.writing() as connection:
        connection.execute(text("UPDATE item_counts SET n = n + 1"))
    done = steadyeye(*command)
    message = " ".join(done.stderr.split())
    assert done.returncode == 2
    assert "the stored counts differ from a recount: items: " in message
    assert "review-export reads the votes and is right" in message
    assert message.endswith("so restore a backup of it")
