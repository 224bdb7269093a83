"""SQLite files that several processes and threads open, write and read at once."""

import sqlite3
import time

WAIT = 30.0  # seconds that a writer waits for another
PAUSE = 0.01


def set_wal_mode(db: sqlite3.Connection, wait: float = WAIT) -> None:
    """Sets a connection's file to WAL mode, in which readers and a writer do not wait.

    Raises `sqlite3.OperationalError` if others hold the file for longer than `wait` seconds.
    """
    end = time.monotonic() + wait
    while True:
        try:
            db.execute("pragma journal_mode = wal")
            return
        except sqlite3.OperationalError as error:
            # if two processes create the file at once, SQLite refuses one without waiting
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(PAUSE)
