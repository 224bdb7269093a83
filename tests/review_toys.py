"""A made-up set to review, and a review of it in a fresh database."""

import itertools

import numpy as np

from steadyeye.core.types import Classes, Sample
from steadyeye.footage.sets import COLUMNS, FrameSets, Member, tags
from steadyeye.review import database, deciding, exporting, items, people, plan, queue
from steadyeye.review.deciding import Given, Rules
from steadyeye.review.sampling import Sampling, sample, store

CLASSES = Classes(("cat", "dog"))
YES = {"correct": "yes", "similar": "yes"}
NO = {"correct": "yes", "similar": "no", "reasons": ["blur"]}
GOOD = {"quality": "good", "labels": ["cat"]}
keys = map("request-{:08d}".format, itertools.count())


def source(anchors=2, k=2):
    """Pictures of one grey each, so that frames differ by a known amount."""
    members = tuple(
        Member(f"v{a}/{a}/{f}", f"v{a}/{a}", f"v{a}", 10 + f, f, (0,))
        for a in range(anchors)
        for f in range(-k, k + 1)
    )

    def one(member):
        grey = 40 * int(member.video[1:]) + 4 * member.offset + 20
        return Sample(
            member.id,
            lambda: np.full((32, 40, 3), grey, np.uint8),
            member.truth,
            member.group,
            tags(member),
        )

    return FrameSets("toy", CLASSES, (*COLUMNS, "truth"), "toy", members, one)


DRAWN = Sampling("set", {"k": 2}, CLASSES)


def draw(sources, out, how=DRAWN):
    sample((frame for each in sources for frame in store(each, out)), out, how)


class Review:
    """A review in a fresh database, with as many reviewers as asked."""

    def __init__(self, folder, reviewers=1, **said):
        self.folder = folder
        self.db = database.connect(database.beside(folder.root))
        self.plan = plan.read({"review": said})
        self.rules = Rules(self.plan, CLASSES.names, folder.fingerprint)
        self.everyone = [stage for stage, votes in self.plan.votes.items() if votes == 0]
        with self.db.writing() as c:
            for number in range(reviewers):
                people.add(c, f"r{number}", joint=self.everyone)
            items.fill(c, folder, self.plan)

    def who(self, number=0):
        with self.db.reading() as c:
            return people.everyone(c)[number]

    def next(self, stage, number=0, most=1):
        with self.db.writing() as c:
            return queue.serve(c, self.plan, self.who(number), stage, most)

    def say(self, served, answer, number=0, **more):
        more = {"key": next(keys), "seconds": 1.0, **more}
        with self.db.writing() as c:
            given = Given(served.assignment, served.nonce, answer=answer, **more)
            return deciding.decide(c, self.rules, self.who(number), given).id

    def undo(self, decision, number=0):
        with self.db.writing() as c:
            return deciding.undo(c, self.rules, self.who(number), (decision, next(keys))).id

    def everything(self, stage, answer, number=0):
        """Answers a stage to its end; returns the payloads in the order they were shown."""
        seen = []
        while served := self.next(stage, number):
            self.say(served[0], answer(served[0].payload), number)
            seen.append(served[0].payload)
        return seen

    def verdicts(self):
        with self.db.reading() as c:
            return exporting.verdicts(c, self.folder, self.plan)
