"""When the rows of a run are done, for benchmarks."""

import time

import numpy as np


class Clock:
    """A watcher that records when rows are done; `add`: for a loop without a run."""

    def __init__(self):
        self.began = time.perf_counter()
        self.times = []
        self.rows = []

    def add(self, done):
        """Records that `done` rows are done now."""
        if done:
            self.times.append(time.perf_counter())
            self.rows.append(done)

    def begin(self, name, rows):
        """What a run calls with the rows of each finished shard."""
        return self.add

    def report_resumed(self, name, finished, shards):
        """Nothing: no shard exists before the run."""

    def report_counts(self, name, count):
        """Nothing to do."""

    def say(self, line):
        """Nothing to do."""

    @property
    def start(self):
        """Seconds to the first shard."""
        return self.times[0] - self.began

    @property
    def whole(self):
        """Rows per second from the start to the last shard."""
        return sum(self.rows) / (self.times[-1] - self.began)

    @property
    def steady(self):
        """Rows per second between the first and the last tenth of them."""
        done = np.cumsum(self.rows)
        first, last = np.searchsorted(done, [0.1 * done[-1], 0.9 * done[-1]])
        return (done[last] - done[first]) / (self.times[last] - self.times[first])
