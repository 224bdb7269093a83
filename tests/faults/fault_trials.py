"""Every command killed at random moments, and with a disk that fails at one call.

A trial fails if an existing file is lost, if a failure is not reported in one line, and if the same
command, repeated, ends with other bytes than an undisturbed one.
"""

import argparse
import errno
import os
import re
import signal
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "fixtures")]

import faulty_commands  # noqa: E402
import signal_trials  # noqa: E402

ERRORS = (errno.ENOSPC, errno.EIO)
AGAIN = 0.4
"""Share of the kills after which the command that goes on is killed as well."""
AT_START = 0.15
"""Share of the kills that come before the first call that changes a file."""
ALONE = 0.5
"""Share of the kills that meet the command alone, not the processes that it began."""
VARYING = re.compile(r"[0-9a-f]{16,}|\d+")


@dataclass
class Outcome:
    """What came of the trials of one command. `tried`: what was done → how often."""

    name: str
    tried: dict = field(default_factory=dict)
    faults: list = field(default_factory=list)

    def add(self, action, fault=""):
        self.tried[action] = self.tried.get(action, 0) + 1
        if fault:
            self.faults.append(fault)


def list_children(pid):
    """The processes that a process began, and those that these began."""
    parents = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
            parents.setdefault(int(stat[1]), []).append(int(entry.name))
    below, left = [], [pid]
    while left:
        children = parents.get(left.pop(), [])
        below += children
        left += children
    return below


def kill_at_random(world, case, random, worker=False):
    """Begins a command and kills it, or one of its workers, at a random moment; whether it did.

    Moments are counted in calls that change files, so that as many lie in the work as in the start.
    """
    alone = random.random() < ALONE
    running = world.begin(case, below=world.work)
    wait_for_moment(world, case, running, random, worker)
    killed, who = running.poll() is None, b""
    if killed and worker:
        workers = find_workers(running.pid)
        chosen = random.choice(workers) if workers else 0
        with suppress(OSError):
            who = Path(f"/proc/{chosen}/cmdline").read_bytes()[:100]
        killed = bool(who)
        kill(chosen)
    elif killed:
        children = list_children(running.pid)
        kill(running.pid)
        for pid in () if alone and not case.cluster else children:
            kill(pid)
    _, stderr = running.communicate()
    fault = f"a worker was killed, {who!r}: code {running.returncode}: {stderr}"
    return killed, fault if worker and running.returncode else ""


def wait_for_moment(world, case, running, random, worker):
    """Waits until a random call that changes files; for a worker from when there is one on."""
    calls = len(world.calls[case.name])
    at = 0 if random.random() < AT_START and not worker else random.randint(1, calls)
    pause = random.random() * (world.seconds[case.name] / 3 if not at else 0.02)
    if worker:
        at, pause = 0, random.random() * world.seconds[case.name] / 10
    while running.poll() is None and world.count() < at:
        time.sleep(0.001)
    while running.poll() is None and worker and not find_workers(running.pid):
        time.sleep(0.01)
    time.sleep(pause)


def find_workers(pid):
    """The processes below one that are Ray's and have a task or an actor."""
    return [process for process in list_children(pid) if is_worker(process)]


def kill(pid):
    with suppress(ProcessLookupError):
        if pid:
            os.kill(pid, signal.SIGKILL)


def is_worker(pid):
    """Whether a process is a worker of Ray that has a task or an actor.

    Its agents are none: with one of them Ray ends the whole node.
    """
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"ray::" in words and not any(part in words for part in (b"IDLE", b"Agent"))
    return False


def try_kills(world, case, count, random, worker=False):
    """The outcome of so many kills, after each or a few of which the command ends."""
    outcome = Outcome(case.name)
    killed = attempts = 0
    while killed < count and attempts < 4 * count:
        world.renew(case)
        before = faulty_commands.snapshot(world.work)
        fault, more = "", True
        while more and not fault and killed < count and attempts < 4 * count:
            attempts += 1
            did, fault = kill_at_random(world, case, random, worker)
            killed += did
            if did:
                outcome.add("worker killed" if worker else "killed")
            fault = fault or faulty_commands.judge_files(world, case, before)
            more = did and not worker and random.random() < AGAIN
        fault = fault or faulty_commands.finish(world, case)
        outcome.add("ended", fault and f"after kill {killed}: {fault}")
        if fault:
            # what an orphan may still write is waited for by nobody
            time.sleep(1)
    return outcome


def choose_places(world, case, every=False):
    """The numbers of the calls that are to fail: of those alike the first, or all."""
    chosen = {}
    for line in world.calls[case.name]:
        number, call, path = line.split(" ", 2)
        kind = (call, VARYING.sub("#", os.path.relpath(path, world.work)))
        chosen.setdefault(line if every else kind, int(number))
    return [*chosen.values()]


def try_failures(world, case, every=False):
    """The outcome of a disk that fails, or a kill, at each of the chosen calls."""
    outcome = Outcome(case.name)
    for index, number in enumerate(choose_places(world, case, every)):
        errors = (*ERRORS, 0) if every else (ERRORS[index % 2],)
        for error in errors:
            fault = faulty_commands.fail_at(world, case, number, error)
            if fault is not None:
                outcome.add(errno.errorcode.get(error, "killed"), fault)
    return outcome


def try_signals(world, case, count, random):
    """The outcome of so many signals of each way to stop a command."""
    outcome = Outcome(case.name)
    for way in signal_trials.WAYS:
        for _ in range(count):
            stopped, fault = signal_trials.try_signal(world, case, way, random)
            outcome.add(way if stopped else "had ended", fault and f"{way} at {fault}")
    return outcome


def write_table(outcomes):
    """The Markdown table of outcomes, a column for all that was done."""
    kinds = list(dict.fromkeys(kind for outcome in outcomes for kind in outcome.tried))
    rows = [[o.name, *(o.tried.get(kind, 0) for kind in kinds), len(o.faults)] for o in outcomes]
    if len(rows) > 1:
        rows.append(["all", *map(sum, [*zip(*rows, strict=True)][1:])])
    lines = [
        f"| {' | '.join(f'{cell:,}' if isinstance(cell, int) else cell for cell in row)} |"
        for row in (["command", *kinds, "faults"], *rows)
    ]
    lines.insert(1, f"|---{'|--:' * (len(kinds) + 1)}|")
    return "\n".join(lines) + "\n"


def share_kills(cases, seconds, count):
    """How many kills each case gets: fewer the longer it takes, at least three."""
    weights = [1 / max(seconds[case.name], 1) ** 0.5 for case in cases]
    return [max(3, round(count * weight / sum(weights))) for weight in weights]


def write_page(page, mark, table):
    """Renews the table between the marks of a page."""
    text = page.read_text(encoding="utf-8")
    start, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
    head, rest = text.split(start)
    page.write_text(f"{head}{start}\n{table}\n{end}{rest.split(end)[1]}", "utf-8")


def main(words):
    """Tries kills or failures on all commands or those named; prints the table and the faults."""
    reading = argparse.ArgumentParser(description=main.__doc__)
    reading.add_argument("kind", choices=["kills", "failures", "signals"])
    reading.add_argument("cases", nargs="*")
    reading.add_argument("--count", type=int, default=200, help="kills over all commands")
    reading.add_argument("--each", type=int, default=3, help="signals of a way, of a command")
    reading.add_argument("--seed", type=int, default=0)
    reading.add_argument("--every", action="store_true", help="all calls, not one of a kind")
    reading.add_argument("--write", type=Path, help="a page whose table is renewed")
    options = reading.parse_intermixed_args(words)
    known = {case.name: case for case in (*faulty_commands.CASES, *faulty_commands.CLUSTERS)}
    if options.kind == "failures":
        known = faulty_commands.BY_NAME
    cases = [known[name] for name in options.cases or known]
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        world = faulty_commands.write_world(Path(folder).resolve())
        for case in cases:
            world.learn(case)
        counts = share_kills(cases, world.seconds, options.count)
        for case, count in zip(cases, counts, strict=True):
            if options.kind == "failures":
                outcomes.append(try_failures(world, case, options.every))
            elif options.kind == "signals":
                outcomes.append(try_signals(world, case, options.each, Random(options.seed)))
            else:
                outcomes.append(try_kills(world, case, count, Random(f"{options.seed}{case.name}")))
            if options.kind == "kills" and case.cluster:
                more = try_kills(world, case, 5, Random(options.seed), worker=True)
                outcomes[-1].tried |= more.tried | {
                    "ended": outcomes[-1].tried["ended"] + more.tried["ended"]
                }
                outcomes[-1].faults += more.faults
            sys.stdout.write(write_table(outcomes[-1:]))
            sys.stdout.writelines(f"  {fault}\n" for fault in outcomes[-1].faults)
            sys.stdout.flush()
    table = write_table(outcomes)
    sys.stdout.write(table)
    if options.write:
        write_page(options.write, options.kind, table)
    return int(any(outcome.faults for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
