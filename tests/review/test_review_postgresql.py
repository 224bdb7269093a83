"""The tests of a review again, on PostgreSQL: queue, quiz, counts, history, boxes, exports."""

import tempfile
from pathlib import Path

import pytest
from forked import SHARED, find_server, run_pytest
from review_toys import SERVER

HERE = Path(__file__).parent
AGAIN = (
    *("test_label_study.py", "test_review_agreement.py", "test_review_boxes.py"),
    *("test_review_counts.py", "test_review_guidelines.py", "test_review_history.py"),
    *("test_review_queue.py", "interchange/test_interchange.py"),
    "interchange/test_rejected_boxes.py",
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
