"""The database of a review: a write is stored exactly if the writer is told so."""

import sqlite3

import pytest
from sqlalchemy import insert, select

from steadyeye.core.errors import UsageError
from steadyeye.review import database
from steadyeye.review.database import reviewers
from steadyeye.review.transactions import UnavailableError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "review.sqlite"


def add(name):
    row = {"name": name, "token_hash": name, "admin": False, "paused": "", "made_at": 0.0}
    return lambda c: c.execute(insert(reviewers).values(row)).inserted_primary_key[0]


def names(data):
    with data.reading() as c:
        return list(c.execute(select(reviewers.c.name).order_by(reviewers.c.id)).scalars())


def test_writes_persist_when_the_database_is_opened_again(path):
    database.connect(f"sqlite:///{path}").write(add("ann"))
    again = database.connect(f"sqlite:///{path}")
    again.write(add("ben"))
    assert names(again) == ["ann", "ben"]


@pytest.mark.parametrize("url", ["oracle://ann:secret@host/db", "oracle://ann:secret@host:x"])
def test_an_address_that_cannot_be_used_is_refused_without_its_password(url):
    with pytest.raises(UsageError, match=r"cannot use the database 'oracle://ann:.*@host") as error:
        database.connect(url)
    assert "secret" not in str(error.value)
    assert "\n" not in str(error.value)


def test_a_database_of_another_version_is_refused_in_one_line(path):
    database.connect(f"sqlite:///{path}").engine.dispose()
    with sqlite3.connect(path) as db:
        db.execute("alter table items rename column block to part")
    with pytest.raises(UsageError, match=r"another version of steadyeye: it has no items\.block"):
        database.connect(f"sqlite:///{path}")


def test_a_write_that_cannot_begin_is_not_acknowledged(path, monkeypatch):
    monkeypatch.setattr(database, "WAIT", 0.05)
    data = database.connect(f"sqlite:///{path}")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(UnavailableError, match="another program holds"):
        data.write(add("ann"))
    other.execute("rollback")
    data.write(add("ben"))
    assert names(data) == ["ben"]


def test_a_failing_write_undoes_only_its_own_changes(path):
    data = database.connect(f"sqlite:///{path}")

    def fail(connection):
        add("ann")(connection)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        data.write(fail)
    data.write(add("ben"))
    assert names(data) == ["ben"]
