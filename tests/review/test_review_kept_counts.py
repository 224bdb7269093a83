"""The counts that are stored with the decisions, after any actions of reviewers."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from review_toys import CLASSES, GOOD, NO, YES, Review, draw, keys, source
from sqlalchemy import event, select, update

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations import review_set
from steadyeye.review.bulk import skip_pairs
from steadyeye.review.database import assignments, decisions, items
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.counts import SPARED, compact_counts
from steadyeye.review.protocol.votes import STANDS, find_standing
from steadyeye.review.results import agreement, status
from steadyeye.review.results.recount import check_counts
from steadyeye.review.sampling.sampling import Sampling
from steadyeye.review.workflow import quality, queue
from steadyeye.review.workflow.decisions import Submission, decide, undo
from steadyeye.review.workflow.quality import set_gold

ANCHORS = [
    GOOD,
    GOOD,
    {"quality": "good", "labels": ["cat", "dog"]},
    {"quality": "bad", "labels": []},
]
DOUBT = {"correct": "no", "similar": "no", "reasons": ["motion", "blur"]}
PAIRS = [YES, YES, NO, DOUBT, {"correct": "yes", "similar": "unsure", "reasons": []}]
ACTIONS = (*["answer"] * 8, "undo", "undo", "change", "gold", "late", "bulk", "join", "compact")


def answers(stage):
    return ANCHORS if stage == "anchors" else PAIRS


class Session:
    """Whatever reviewers may do, in one transaction."""

    def __init__(self, connection, review, numbers):
        self.c, self.review, self.plan, self.numbers = connection, review, review.plan, numbers

    def pick(self, options):
        return options[next(self.numbers) % len(options)] if options else None

    def who(self):
        return self.pick(reviewers.list_reviewers(self.c))

    def answer(self):
        who, stage = self.who(), self.pick(["anchors", "pairs", "pairs", "joint"])
        for served in queue.serve_items(self.c, self.plan, who, stage, 1):
            self.send(who, served, None)

    def send(self, who, served, replaces):
        answer = self.pick(answers(served.stage))
        more = {"key": next(keys), "seconds": self.pick([0.0, 0.04, 3.21, 77.7])}
        submission = Submission(
            served.assignment, served.nonce, answer=answer, replaces=replaces, **more
        )
        decide(self.c, self.review.rules, who, submission)

    def choose(self):
        """A reviewer, and a decision of theirs."""
        who = self.who()
        query = select(decisions.c.id, decisions.c.item).where(decisions.c.reviewer == who.id)
        query = query.order_by(decisions.c.id)
        return who, self.pick(self.c.execute(query).all())

    def undo(self):
        who, decision = self.choose()
        if decision:
            undo(self.c, self.review.rules, who, decision.id, next(keys))

    def change(self):
        who, decision = self.choose()
        if decision:
            own = (assignments.c.item == decision.item) & (assignments.c.reviewer == who.id)
            row = self.c.execute(select(assignments).where(own)).one()
            standing = find_standing(self.c, decision.item, who.id)
            item = queue.ServedItem(row.id, row.nonce, row.stage, {})
            self.send(who, item, standing.id if standing else None)

    def gold(self):
        query = select(items).where(items.c.stage.in_(("anchors", "pairs"))).order_by(items.c.id)
        item = self.pick(self.c.execute(query).all())
        set_gold(self.c, item.stage, item.key, self.pick(answers(item.stage)))

    def late(self):
        self.c.execute(update(assignments).where(~assignments.c.answered).values(made_at=0.0))

    def bulk(self):
        idle = items.c.assigned == 0
        query = select(items.c.id).where(items.c.stage == "pairs", items.c.gold.is_(None), idle)
        pairs = self.c.execute(query.order_by(items.c.id)).scalars().all()
        skip_pairs.update_items(self.c, pairs[:2], {"state": self.pick([*SPARED, "waiting"])})

    def join(self):
        if len(reviewers.list_reviewers(self.c)) < 5:
            reviewers.add_reviewer(self.c, next(keys), joint=self.plan.joint)

    def compact(self):
        compact_counts(self.c)


def urls():
    yield pytest.param("sqlite", id="sqlite")
    yield pytest.param("postgresql", id="postgresql", marks=pytest.mark.slow)


@pytest.fixture(scope="module", params=urls())
def review(request):
    # not in tmp_path: PostgreSQL runs as a user of its own, whom pytest's folders are closed to
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        draw([source(3)], root / "set", Sampling("set", {}, CLASSES))
        review_settings = {"stages": {"anchors": 1, "pairs": 2}, "gold": {"every": 2, "least": 0.0}}
        stored_set = review_set.read(root / "set")
        if request.param == "sqlite":
            yield Review(stored_set, 2, **review_settings)
            return
        import pgserver

        server = pgserver.get_server(root / "postgres")
        yield Review(stored_set, 2, url=server.get_uri(), **review_settings)
        server.cleanup()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:XDG_RUNTIME_DIR is not set")
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # to make a failure smaller takes minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32), actions=st.lists(st.sampled_from(ACTIONS), max_size=60))
def test_kept_counts_equal_a_recount(review, seed, actions):
    numbers = iter(lambda state=[seed]: _step(state), None)
    with review.db.engine.connect() as c, c.begin() as transaction:
        session = Session(c, review, numbers)
        for action in actions:
            try:
                with c.begin_nested():
                    getattr(session, action)()
            except UsageError:  # refused: nothing was written
                pass
        assert check_counts(c, review.plan) == []
        check_standing(c)
        transaction.rollback()


def check_standing(c):
    """What stands, and how long the last answers took, against plain loops over all decisions."""
    rows = c.execute(select(decisions).order_by(decisions.c.id)).all()
    last = {(row.item, row.reviewer): row for row in rows}
    standing = {row.id for row in last.values() if row.kind != "undo"}
    assert {*c.execute(select(decisions.c.id).where(STANDS)).scalars()} == standing
    took = {person.id: [] for person in reviewers.list_reviewers(c)}
    for row in rows:
        if row.kind == "answer" and row.seconds > 0 and row.reviewer in took:
            took[row.reviewer].append(row.seconds)
    for most in (1, 3, quality.RECENT):
        recent = quality.read_recent_seconds(c, most)
        assert {key: sorted(recent[key]) for key in took} == {
            key: sorted(seconds[-most:]) for key, seconds in took.items()
        }


def _step(state):
    state[0] = (state[0] * 6364136223846793005 + 1442695040888963407) % 2**64
    return state[0] >> 33


def count_statements(tmp_path, anchors, people=2):
    """Statements of each page's content, in a set that was answered by half."""
    draw([source(anchors)], tmp_path / "set", Sampling("set", {}, CLASSES))
    folder = review_set.read(tmp_path / "set")
    rare = {"every": 10**6}  # a gold question would be one more statement
    review = Review(folder, people, stages={"anchors": 1, "pairs": 2}, gold=rare)
    for number in (0, 1):
        review.everything("anchors", lambda _: GOOD, number)
        for _ in range(anchors):
            (served,) = review.next("pairs", number)
            review.say(served, PAIRS[served.payload["offset"]], number)
    measurement = measure_now(review)
    who, statements = review.who(), []
    event.listen(
        review.db.engine,
        "before_cursor_execute",
        lambda *arguments: statements.append(arguments[2]),
    )
    counts = []
    for read in (
        lambda c: status.summarise(c, folder, review.plan, measurement),
        lambda c: status.count_progress(c, review.plan, who),
        lambda c: queue.serve_items(c, review.plan, who, "pairs"),
        lambda c: queue.add_set_items(c, folder, review.plan),
    ):
        statements.clear()
        with review.db.writing() as c:
            read(c)
        counts.append(len(statements))
    return counts


def measure_now(review):
    with review.db.reading() as c:
        return agreement.measure(c, review.folder, review.plan)


@pytest.mark.slow
def test_statements_of_a_page_do_not_grow_with_the_set_or_its_reviewers(tmp_path):
    few, many, crowd = (
        count_statements(tmp_path / f"{n} {people}", n, people)
        for n, people in ((2, 2), (6, 2), (2, 9))
    )
    assert few == many == crowd
    assert max(many) < 20
    assert min(many) >= 1


def test_a_finished_review_names_its_next_step(tmp_path):
    draw([source(2)], tmp_path / "set", Sampling("set", {}, CLASSES))
    review = Review(review_set.read(tmp_path / "set"), 2)

    def read_state(number):
        with review.db.reading() as c:
            stages = status.count_progress(c, review.plan, review.who(number))
            summary = status.summarise(c, review.folder, review.plan)
        return status.describe_rest(stages, summary["next"]), summary["next"]

    assert read_state(0) == ("", None)
    (first,) = review.next("anchors", 0)
    (second,) = review.next("anchors", 1)
    review.say(first, {"quality": "bad", "labels": []}, 0)
    assert read_state(0) == (
        "No item is open for you now; other reviewers still decide 1 item.",
        None,
    )
    review.say(second, GOOD, 1)
    review.everything("pairs", lambda p: DOUBT if p["offset"] == 1 else YES, 0)
    review.everything("joint", lambda _: DOUBT, 0)
    assert read_state(0)[0] == "No item is open for you now; other reviewers still decide 1 item."
    review.everything("joint", lambda _: NO, 1)
    text, step = read_state(1)
    assert text == "Done: no item is open for anybody; the admin can export it with review-export."
    root = review.folder.root
    assert step == {
        "do": "export",
        "command": f"steadyeye review-export {root} --out {root}-reviewed",
    }
    with review.db.reading() as c:
        summary = status.summarise(c, review.folder, review.plan)
    # the four pairs of the bad anchor are in no count; of two reasons each counts
    assert [stage["done"] for stage in summary["stages"]] == [2, 4, 1]
    assert [stage["waiting"] + stage["open"] for stage in summary["stages"]] == [0, 0, 0]
    assert summary["table"][1]["reasons"] == {"blur": 1, "motion": 1, "wrong label": 1}
