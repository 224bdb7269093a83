"""Pairs without a question: the forecast, the audit's bound, and a whole review with both."""

import copy
import itertools
import json
import shutil
import sys
from math import comb

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from scipy.special import ndtr
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern
from sqlalchemy import select

from steadyeye.cli import main
from steadyeye.cli.review_tables import build_tables
from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import stream
from steadyeye.data.annotations import review_set
from steadyeye.review import database
from steadyeye.review.bulk import audit, skip_pairs
from steadyeye.review.database import audits, decisions, items
from steadyeye.review.interchange.frames import export_set
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.stages import read_plan
from steadyeye.review.results import status, verdicts
from steadyeye.review.workflow import decisions as workflow_decisions
from steadyeye.review.workflow import queue
from steadyeye.review.workflow.decisions import Rules, Submission

YES = {"correct": "yes", "similar": "yes"}
NO = {"correct": "yes", "similar": "no", "reasons": ["motion"]}
GOOD = {"quality": "good", "labels": ["cat"]}
K = 6


def passes(errors, audited, population, wrong):
    """The probability of at most so many errors, counted out."""
    ways = sum(comb(wrong, e) * comb(population - wrong, audited - e) for e in range(errors + 1))
    return ways / comb(population, audited)


@pytest.mark.parametrize(("population", "audited", "errors"), [(40, 20, 0), (40, 20, 2), (9, 9, 1)])
@pytest.mark.parametrize("risk", [0.05, 0.2])
def test_the_bound_is_that_of_counting(population, audited, errors, risk):
    possible = [
        wrong - errors
        for wrong in range(errors, population - (audited - errors) + 1)
        if passes(errors, audited, population, wrong) > risk
    ]
    assert audit.bound_wrong(errors, audited, population, risk) == max(possible, default=0)


def test_a_bound_worked_by_hand():
    # 2 of 4 were drawn, none wrong: with 2 wrong ones that happens once in 6, with 1 once in 2
    assert audit.bound_wrong(0, 2, 4, 0.2) == 1
    assert audit.bound_wrong(0, 2, 4, 0.1) == 2


def test_the_docs_say_what_the_first_step_of_an_audit_takes():
    """Of 881 labels from 12 objects: one look at each, and the fewest that show no more wrong."""
    text = " ".join((ROOT / "docs/how-to/review-audit.md").read_text().split())
    labels, objects = 881, 12
    costs = []
    for most in (0.01, 0.02, 0.05):
        too_many = int(most * labels) + 1
        risk = skip_pairs.ROUNDS[0][1] / audit.STEPS
        sizes = range(1, labels - too_many)
        costs.append(objects + next(n for n in sizes if passes(0, n, labels, too_many) <= risk))
    first, second, third = costs
    assert (
        f"take {first} decisions at `--most 0.01` in the place of {labels}, {second} at 0.02 and "
        f"{third} at 0.05 ({labels / third:.1f} times fewer)"
    ) in text


@pytest.mark.parametrize(("population", "people", "most"), [(80, 0, 0.1), (60, 60, 0.05)])
def test_all_steps_together_pass_a_bad_pool_no_oftener_than_the_risk(population, people, most):
    planned = audit.plan_sizes(population, people, most, 0.05)
    assert list(planned) == sorted(planned)
    for wrong in range(population + 1):
        # errors so far → probability, over the steps that did not pass
        paths, wrongly = {0: 1.0}, 0.0
        for step, (before, size) in enumerate(zip((0, *planned), planned, strict=False)):
            further: dict[int, float] = {}
            for errors, chance in paths.items():
                left, rest = wrong - errors, population - before
                for more in range(min(left, size - before) + 1):
                    ways = comb(left, more) * comb(max(rest - left, 0), size - before - more)
                    probability = chance * ways / comb(rest, size - before)
                    further[errors + more] = further.get(errors + more, 0.0) + probability
            passing = {e: p for e, p in further.items() if e <= step}
            wrongly += sum(
                p for e, p in passing.items() if wrong - e > most * (people + population - e)
            )
            paths = {e: p for e, p in further.items() if e > step}
        assert wrongly <= 0.05


def test_the_forecast_is_that_of_a_gaussian_process():
    rng = np.random.default_rng(0)
    pairs = np.sort(rng.integers(0, 30, (25, 2)), axis=1).astype(float)
    answers = np.where(pairs[:, 1] - pairs[:, 0] < 8, 1.0, -1.0)
    queries = np.array([[3.0, 5.0], [2.0, 20.0], [10.0, 17.0]])
    frames = np.unique(np.concatenate([pairs, queries]))
    points = np.concatenate([np.stack([frames, frames], 1), pairs])
    values = np.concatenate([np.ones(len(frames)), answers]) - skip_pairs.MEAN
    fits = [
        GaussianProcessRegressor(
            ConstantKernel(skip_pairs.VARIANCE) * Matern(length, nu=0.5),
            alpha=skip_pairs.NOISE,
            optimizer=None,
        ).fit(points, values)
        for length in skip_pairs.LENGTHS
    ]
    best = max(fits, key=lambda fit: fit.log_marginal_likelihood_value_)
    mean, spread = best.predict(queries, return_std=True)
    expected = ndtr((mean + skip_pairs.MEAN) / spread)
    assert skip_pairs.predict_similarity(pairs, answers, queries) == pytest.approx(
        expected, abs=1e-9
    )


def test_rounds_begin_far_from_all_answers_and_end_at_the_edge():
    pairs = np.array([(a, b) for a in range(40) for b in range(a + 1, min(a + 11, 40))], float)
    truth = [(a < 20) == (b < 20) for a, b in pairs]
    replies: list[bool | None] = [None] * len(pairs)
    first = skip_pairs.plan_round(pairs, replies, 0.97).ask
    first_pairs = pairs[first]
    assert first_pairs[0].tolist() == [0, 10]
    away = np.abs(pairs[:, None] - first_pairs[None]).max(axis=2).min(axis=1)
    assert (np.minimum(away, pairs[:, 1] - pairs[:, 0]) <= skip_pairs.NEAR * 2).all()
    while (step := skip_pairs.plan_round(pairs, replies, 0.97)).ask:
        assert all(replies[n] is None for n in step.ask)
        for number in step.ask:
            replies[number] = truth[number]
    assert len(step.implied) > 100
    assert all(truth[n] for n in step.implied)
    assert not any(truth[n] for n in step.unlikely)
    everything = skip_pairs.plan_round(pairs, replies, 2.0)
    assert everything.ask
    assert not everything.implied


def draw(root, frames=22, videos=2, **settings):
    """A set in which every frame of every video is an anchor."""
    rows = [
        {
            "id": f"v{v}/{a}/{n}",
            "group": f"v{v}/{a}",
            "video": f"v{v}",
            "frame": n,
            "offset": n - a,
            "seconds": n / 10,
            "fps": 10.0,
            "frame_type": "",
            "labels": [0],
            "image": f"{v}-{n}.jpg",
            "across_cut": False,
            "duplicate_of": "",
            "accepted": True,
            "reason": "",
        }
        for v in range(videos)
        for a in range(frames)
        for n in range(max(a - K, 0), min(a + K + 1, frames))
    ]
    root.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, review_set.FRAMES), root / "frames.parquet")
    content = {
        "version": 1,
        "name": "made up",
        "kind": "frames",
        "classes": {"names": ["cat", "dog"]},
        "review": {"stages": {"pairs": 1}, "shortcut": True, **settings},
    }
    (root / "set.json").write_text(json.dumps(content))
    return review_set.read(root)


def edge(payload):
    """The first video stays as it is; the second changes half way."""
    anchor, neighbour = payload["frame"] - payload["offset"], payload["frame"]
    return payload["video"] == "v0" or (anchor < 11) == (neighbour < 11)


def speckled(payload):
    """Three in ten pairs are not similar, wherever they lie."""
    names = sorted((payload["anchor"], payload["image"]))
    return bool(stream(0, *names).random() > 0.3)


class Review:
    """A review of a set to its end, by one reviewer who goes by a rule."""

    def __init__(self, folder, similar):
        self.folder, self.similar = folder, similar
        self.db = database.connect(database.default_url(folder.root))
        self.plan = read_plan(folder.content)
        self.rules = Rules(self.plan, folder.classes.names, folder.fingerprint)
        self.keys = map("request-{:08d}".format, itertools.count())
        self.shown: list[dict] = []
        self.given: dict[str, tuple] = {}
        with self.db.writing() as c:
            reviewers.add_reviewer(c, "r0", joint=["joint"])
            queue.add_set_items(c, folder, self.plan)
            skip_pairs.advance_all(c, self.plan)

    def copy(self, root):
        """The review as it stands, in another folder."""
        self.db.engine.dispose()
        shutil.copytree(self.folder.root, root)
        other = copy.copy(self)
        other.folder = review_set.read(root)
        other.db = database.connect(database.default_url(root))
        other.shown, other.given = [*self.shown], {**self.given}
        return other

    def answer(self, served, answer, replaces=None):
        submission = Submission(
            served.assignment, served.nonce, next(self.keys), answer, 1.0, replaces=replaces
        )
        with self.db.writing() as c:
            return workflow_decisions.decide(
                c, self.rules, reviewers.list_reviewers(c)[0], submission
            ).id

    def decide(self):
        """Answers all that is asked, also what is asked because of it."""
        while True:
            with self.db.writing() as c:
                who = reviewers.list_reviewers(c)[0]
                served = [
                    s
                    for stage in self.plan.votes
                    for s in queue.serve_items(c, self.plan, who, stage)
                ]
            if not served:
                return
            for item in served:
                if item.stage == "anchors":
                    self.answer(item, GOOD)
                    continue
                reply = YES if self.similar(item.payload) else NO
                done = self.answer(item, reply)
                if item.stage == "pairs":
                    self.shown.append(item.payload)
                    self.given[item.payload["image"] + item.payload["anchor"]] = (item, done)

    def audit(self, most=0.05, seed=0):
        with self.db.writing() as c:
            return audit.run_audit(c, self.plan, most, seed)

    def verdicts(self):
        with self.db.reading() as c:
            return verdicts.judge_frames(c, self.folder, self.plan)

    def finish(self):
        """Decides and audits until nothing changes; returns what the audits said."""
        messages = []
        while True:
            self.decide()
            messages.append(self.audit())
            if "passed" in messages[-1] or "everything is decided" in messages[-1]:
                return messages

    def truth(self):
        return {
            row["id"]: row["offset"] == 0
            or self.similar(
                {**row, "anchor": f"{row['video'][1:]}-{row['frame'] - row['offset']}.jpg"}
            )
            for row in self.folder.frames.to_pylist()
        }


@pytest.fixture(scope="module")
def decided(tmp_path_factory):
    """A review in which all that is asked before an audit is answered."""
    review = Review(draw(tmp_path_factory.mktemp("edge") / "set"), edge)
    review.decide()
    return review


@pytest.fixture(scope="module")
def finished(decided, tmp_path_factory):
    review = decided.copy(tmp_path_factory.mktemp("edge") / "set")
    return review, review.finish()


@pytest.mark.slow
def test_a_review_is_shortened_to_its_end(finished):
    review, messages = finished
    pairs = sum(row["offset"] != 0 for row in review.folder.frames.to_pylist())
    sights = [frozenset((p["anchor"], p["image"])) for p in review.shown]
    assert len(set(sights)) == len(sights) < pairs / 3
    assert messages[0].startswith("audit 1, step 1: ")
    assert "pairs are accepted in bulk" in messages[-1]
    frame_verdicts, truth = review.verdicts(), review.truth()
    assert verdicts.UNDECIDED not in {v.reason for v in frame_verdicts.values()}
    accepted = [key for key, v in frame_verdicts.items() if v.accepted]
    assert sum(not truth[key] for key in accepted) <= 0.05 * len(accepted)
    assert sum(v.reason == verdicts.IN_BULK for v in frame_verdicts.values()) > 100
    with review.db.reading() as c:
        rows = c.execute(select(decisions)).all()
        row = audit.find_latest(c)
        summary = status.summarise(c, review.folder, review.plan)
    bulk = [decision for decision in rows if decision.kind == "bulk"]
    assert {decision.comment for decision in bulk} == {"audit 1"}
    assert len(bulk) == summary["shortcut"]["spared"]["bulk"]
    assert not {decision.item for decision in bulk} & set(row.pool[: row.sizes[row.step]])
    assert summary["shortcut"]["holds"]
    assert summary["table"][0]["reviewed"] == len(review.shown)
    assert [person["name"] for person in summary["reviewers"]] == ["r0"]
    spared, audited = read_spared(summary)
    with review.db.reading() as c:
        states = c.execute(select(items.c.state).where(items.c.stage == "pairs")).scalars().all()
    counts = {state: f"{states.count(state):,}" for state in ("mirrored", "beyond", "bulk")}
    assert {name: n for n, name, _ in spared} == {name: n for name, n in counts.items() if n != "0"}
    sample = f"{row.sizes[row.step]:,}"
    assert audited == [("1", sample, str(row.wrong), "5\u202f%", "passed")]


def read_spared(summary):
    """The rows of the two tables of what nobody is asked about: pairs, and audits."""
    tables = {table.columns[0]: table.rows for table in build_tables(summary)}
    return tables["pairs"], tables["audit"]


@pytest.mark.slow
def test_the_order_of_the_answers_changes_nothing(finished, tmp_path):
    review, _ = finished
    other = Review(draw(tmp_path / "set", seed=7), edge)
    other.finish()
    sights = [
        [frozenset((p["anchor"], p["image"])) for p in shortened.shown]
        for shortened in (review, other)
    ]
    before = [
        s[: -_count_audited(shortened)]
        for s, shortened in zip(sights, (review, other), strict=True)
    ]
    assert before[0] != before[1]
    assert set(before[0]) == set(before[1])


def _count_audited(review):
    """How many pairs were asked for the audit."""
    with review.db.reading() as c:
        row = audit.find_latest(c)
        answered_items = {d.item for d in c.execute(select(decisions)) if d.kind == "answer"}
    return len(answered_items & set(row.pool[: row.sizes[row.step]]))


@pytest.mark.slow
def test_a_review_is_the_same_twice(finished, tmp_path):
    review, messages = finished
    again = Review(draw(tmp_path / "set"), edge)
    assert again.finish() == messages
    assert again.shown == review.shown
    assert again.verdicts() == review.verdicts()


@pytest.mark.slow
def test_an_audit_that_finds_errors_accepts_nothing(decided, tmp_path):
    review = decided.copy(tmp_path / "set")
    assert "step 1" in review.audit()
    review.similar = speckled  # what was implied turns out to be wrong
    review.decide()
    assert "audit 1 failed: " in review.audit()
    messages = review.finish()
    assert messages[-1].startswith("everything is decided")
    with review.db.reading() as c:
        assert [row.state for row in c.execute(select(audits))] == ["failed"]
        assert not [row for row in c.execute(select(decisions)) if row.kind == "bulk"]
    reasons = {v.reason for v in review.verdicts().values()}
    assert reasons <= {"", "motion", verdicts.LEFT_OUT}


@pytest.mark.slow
def test_a_second_audit_spares_what_the_first_did_not_doubt(decided, tmp_path):
    review = decided.copy(tmp_path / "set")
    assert "step 1" in review.audit()
    review.similar = lambda payload: payload["video"] == "v0" or speckled(payload)
    messages = review.finish()
    assert any("audit 1 failed: " in message for message in messages)
    assert "audit 2 passed: 0 of " in messages[-1]
    with review.db.reading() as c:
        rows = c.execute(select(audits).order_by(audits.c.id)).all()
        videos = {
            key.split("/")[0]: state
            for key, state in skip_pairs.list_states(c).items()
            if state == "bulk"
        }
    assert [(row.state, row.risk) for row in rows] == [("failed", 0.03), ("passed", 0.02)]
    assert "v0" in videos


def test_nothing_is_accepted_in_bulk_without_a_passed_audit(decided, tmp_path):
    review = decided.copy(tmp_path / "set")
    with review.db.writing() as c, pytest.raises(UsageError, match="before an audit has passed"):
        audit.accept_rest(c, audit.find_latest(c))
    assert "step 1" in review.audit()
    with review.db.writing() as c, pytest.raises(UsageError, match="before an audit has passed"):
        audit.accept_rest(c, audit.find_latest(c))
    assert "audit 1 waits: 0 of" in review.audit()
    with pytest.raises(UsageError, match=r"audited for a share of 0\.05"):
        review.audit(most=0.01)
    reasons = [v.reason for v in review.verdicts().values()]
    assert reasons.count(verdicts.UNDECIDED) > 100


def test_bulk_stands_only_as_long_as_its_audit_does(finished, tmp_path):
    review = finished[0].copy(tmp_path / "set")
    with review.db.reading() as c:
        row = audit.find_latest(c)
        audited_items = set(row.pool[: row.sizes[row.step]])
        answer_ids = {
            d.id
            for d in c.execute(select(decisions))
            if d.item in audited_items and d.kind == "answer"
        }
    changed = [change for change in review.given.values() if change[1] in answer_ids][:3]
    for served, done in changed:
        review.answer(served, NO, replaces=done)
    review.similar = lambda payload: False
    review.decide()
    assert "is no longer valid" in review.audit()
    reasons = [v.reason for v in review.verdicts().values()]
    assert verdicts.IN_BULK not in reasons
    with review.db.reading() as c:
        _, audited = read_spared(status.summarise(c, review.folder, review.plan))
    assert audited[-1][-1].startswith("no longer valid")
    with review.db.reading() as c, pytest.raises(UsageError, match="not decided"):
        export_set(c, review.folder, review.plan, tmp_path / "out")


def test_a_video_whose_anchors_are_all_rejected_asks_nothing_more(tmp_path):
    folder = draw(tmp_path / "set", frames=12, stages={"anchors": 1, "pairs": 1})
    review = Review(folder, edge)
    with review.db.writing() as c:
        who = reviewers.list_reviewers(c)[0]
        served = queue.serve_items(c, review.plan, who, "anchors", most=24)
    for item in served:
        review.answer(item, GOOD if item.payload["video"] == "v0" else {"quality": "bad"})
    review.decide()
    assert {payload["video"] for payload in review.shown} == {"v0"}


def test_pairs_wait_for_all_anchors_of_their_block(tmp_path):
    folder = draw(tmp_path / "set", frames=12, videos=1, stages={"anchors": 1, "pairs": 1})
    review = Review(folder, edge)
    for number in range(12):
        with review.db.writing() as c:
            who = reviewers.list_reviewers(c)[0]
            assert queue.serve_items(c, review.plan, who, "pairs") == []
            served = queue.serve_items(c, review.plan, who, "anchors", most=1)[0]
        review.answer(served, GOOD if number else {"quality": "bad"})
        if not number:
            bad = served.payload["image"]
    review.decide()
    assert bad not in {payload["anchor"] for payload in review.shown}
    assert "which saves too little" in review.audit(most=0.01)
    review.decide()
    frame_verdicts = review.verdicts()
    assert sum(v.reason == "anchor bad" for v in frame_verdicts.values()) == 1 + len(
        [row for row in folder.frames.to_pylist() if _anchor(row) == bad and row["offset"]]
    )
    assert sum(v.accepted for v in frame_verdicts.values()) > 100


def _anchor(row):
    return f"{row['video'][1:]}-{row['frame'] - row['offset']}.jpg"


def test_pairs_across_a_cut_are_always_asked_where_the_plan_asks_for_them(tmp_path):
    folder = draw(tmp_path / "set", videos=1)
    content = json.loads((folder.root / "set.json").read_text())
    content["review"]["across_cuts"] = True
    (folder.root / "set.json").write_text(json.dumps(content))
    rows = folder.frames.to_pylist()
    cut = [{**row, "across_cut": (_first(row) < 15) != (row["frame"] < 15)} for row in rows]
    pq.write_table(pa.Table.from_pylist(cut, review_set.FRAMES), folder.root / "frames.parquet")
    review = Review(review_set.read(folder.root), lambda payload: True)
    review.decide()
    pairs = {frozenset((p["anchor"], p["image"])) for p in review.shown}
    across = [row for row in cut if row["across_cut"]]
    assert across
    assert {frozenset((_anchor(row), row["image"])) for row in across} <= pairs


def _first(row):
    return row["frame"] - row["offset"]


def test_the_command_tells_what_comes_next(tmp_path, monkeypatch, capsys):
    folder = draw(tmp_path / "set")
    Review(folder, edge)
    call(monkeypatch, folder, "--most", "0.05")
    assert "the audit must wait: " in capsys.readouterr().out
    plain = draw(tmp_path / "plain", shortcut=False)
    Review(plain, edge)
    with pytest.raises(SystemExit, match="2"):
        call(monkeypatch, plain)
    assert "every pair of this set is reviewed" in capsys.readouterr().err


def call(monkeypatch, folder, *more):
    monkeypatch.setattr(sys, "argv", ["steadyeye", "review-audit", str(folder.root), *more])
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
