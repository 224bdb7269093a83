"""Tests of a review again, on PostgreSQL: all that together send every statement it sends."""

import tempfile
from pathlib import Path

import pytest
from forked import SHARED, find_server, run_pytest
from review_toys import SERVER

HERE = Path(__file__).parent
AGAIN = (
    *("test_review_queue.py", "test_review_history.py"),
    "test_label_study.py::test_a_premise_that_is_stated_is_to_be_checked",
    "test_label_study.py::test_pictures_that_another_server_of_a_study_made_are_sent",
    "test_review_boxes.py::test_a_known_answer_is_no_mistake_that_people_found_in_the_annotation",
    "test_review_boxes.py::test_who_checks_boxes_does_not_wait_for_who_drew_them",
    "test_review_counts.py",
    "test_review_guidelines.py::test_each_version_that_was_shown_is_part_of_the_export",
    "interchange/test_interchange.py::test_a_changed_annotation_replaces_and_an_older_one_does_not",
    "interchange/test_interchange.py::test_a_review_of_boxes_comes_back_as_it_was[cvat]",
    "interchange/test_rejected_boxes.py::test_rejected_boxes_are_not_copied_to_other_frames",
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:XDG_RUNTIME_DIR is not set")
def test_a_review_is_the_same_on_postgresql():
    import pgserver

    # not in tmp_path: PostgreSQL runs as a user of its own, whom pytest's folders are closed to
    with tempfile.TemporaryDirectory() as folder:
        server = pgserver.get_server(folder)
        try:
            # nothing here survives a power cut, and a database a test is many writes
            server.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf();")
            where = {SERVER: server.get_uri(), SHARED: find_server()}
            done = run_pytest("-q", "-p", "no:cacheprovider", *AGAIN, cwd=HERE, env=where)
        finally:
            server.cleanup()
    assert done.returncode == 0, done.stdout[-5000:]
