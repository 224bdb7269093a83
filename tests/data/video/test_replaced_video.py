import gc
import os
import signal
import threading
import time

import encoded
import numpy as np

from steadyeye.data.sources.every_frame import every_frame
from steadyeye.data.video import decoder


def test_a_video_that_is_replaced_is_opened_again(tmp_path):
    path = encoded.write(tmp_path / "a.mp4", "libx264", count=20)
    first = every_frame(str(path), cuts="none")
    before = first[15].image()
    new = encoded.write(tmp_path / "new.mp4", "libx264", count=30, group=30)
    alone = every_frame(str(new), cuts="none")
    os.replace(new, path)
    again = every_frame(str(path), cuts="none")
    assert len(again) == 30
    expected = [encoded.picture(number).astype(int) for number in (15, 29)]
    for number, picture in zip((15, 29), expected, strict=True):
        assert np.abs(again[number].image() - picture).mean() < 20
    del alone
    assert np.abs(before - expected[0]).mean() < 20


def test_a_forked_process_opens_its_own_decoders(tmp_path):
    path = encoded.write(tmp_path / "a.mp4", "libx264", count=20)
    source = every_frame(str(path), cuts="none")
    expected = source[7].image()
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        signal.alarm(60)  # freeing the parent's decoders would wait for ever
        decoder._open.__dict__.clear()
        gc.collect()
        os.write(write, source[7].image().tobytes()[:1000])
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert os.read(read, 1000) == expected.tobytes()[:1000]


def test_a_fork_of_a_thread_is_not_stopped_by_decoders_of_others(tmp_path):
    """As a library that reports home from a thread forks: Python frees what the main one holds."""
    source = every_frame(str(encoded.write(tmp_path / "a.mp4", "libx264", count=20)), cuts="none")
    expected = source[7].image()
    codes = []

    def fork():
        pid = os.fork()
        if not pid:
            os._exit(0)
        until = time.monotonic() + 60
        while time.monotonic() < until and not codes:
            if os.waitpid(pid, os.WNOHANG)[0]:
                codes.append(0)
            time.sleep(0.01)
        if not codes:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    assert codes == [0], "freeing a decoder of the parent waits for ever"
    assert (source[7].image() == expected).all()
