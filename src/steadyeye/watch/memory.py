"""The state of a watch, in memory and in its state file, so that a restart continues."""

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.files import encode_record, read_checked, write_file
from steadyeye.core.types import Detector, Model
from steadyeye.watch.frames import FeedMark, FrameCounts, is_live, read_clock, redact
from steadyeye.watch.measures import MEASURES
from steadyeye.watch.promises import Promise, Watched, watch_promise
from steadyeye.watch.reference import Reference
from steadyeye.watch.repeats import RepeatCount
from steadyeye.watch.series import Series

STATE = "state.json"
DAY = 86_400.0
BEGINNING = 1 << 16
"""Bytes of a video file by which it is known again."""
ALERTS = 100
"""Alerts that are stored."""


@dataclass(frozen=True)
class WatchSettings:
    """The settings of a watch.

    `source`, `model`: as the user wrote them. `block`, `period`, `reference`: seconds. `days`: in
    which one false alarm of a promise is expected at most. `keep`: bytes of stored frames. `rate`:
    frames a second at most. `stop_at_alert`: whether the first alert ends the watch.
    """

    source: str
    model: str
    promises: tuple[Promise, ...] = ()
    block: float = 30.0
    period: float = 3_600.0
    reference: float = 600.0
    days: float = 20.0
    keep: int = 200_000_000
    rate: float | None = None
    stop_at_alert: bool = False

    @property
    def every(self) -> float:
        """Blocks in which one false alarm is expected at most."""
        return self.days * DAY / self.block


@dataclass
class Memory:
    """The content of the state file, with which a restart continues.

    `observer`: the record of an `Observer`, None if there is none to continue.
    """

    counts: FrameCounts = field(default_factory=FrameCounts)
    processed: int = 0
    failed: int = 0
    starts: int = 0
    began: float = 0.0
    mark: FeedMark = field(default_factory=FeedMark)
    observer: Mapping[str, Any] | None = None
    series: dict[str, Series] = field(default_factory=dict)
    alerts: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=ALERTS))
    reference: Reference = field(default_factory=lambda: Reference(0.0))
    watched: tuple[Watched, ...] = ()
    repeats: RepeatCount = field(default_factory=RepeatCount)


def write_memory(
    memory: Memory,
    settings: WatchSettings,
    model: Model | Detector,
    out: Path,
    counts: FrameCounts,
) -> None:
    """Writes the state file, whole or not at all; `counts`: of the frames that are in it."""
    record = {
        "identity": identify(settings, model),
        "counts": counts.record(),
        "processed": memory.processed,
        "failed": memory.failed,
        "starts": memory.starts,
        "began": memory.began,
        "mark": asdict(memory.mark),
        "observer": memory.observer,
        "series": {name: series.record() for name, series in memory.series.items()},
        "alerts": list(memory.alerts),
        "reference": asdict(memory.reference),
        "repeats": asdict(memory.repeats),
        "promises": [watched.record() for watched in memory.watched],
    }
    write_file(out / STATE, encode_record(record))


def describe_memory(memory: Memory) -> dict[str, Any]:
    """The values that the page shows."""
    return {
        "began": memory.began,
        "starts": memory.starts,
        "counts": {
            **memory.counts.record(),
            "processed": memory.processed,
            "failed": memory.failed,
        },
        "measures": {
            name: {"about": MEASURES[name], **series.describe()}
            for name, series in sorted(memory.series.items())
        },
        "reference": {name: list(ends) for name, ends in memory.reference.ranges.items()},
        "promises": [
            {
                "promise": str(watched.promise),
                "measure": watched.promise.measure,
                "is_most": watched.promise.is_most,
                "limit": watched.promise.limit,
                "is_broken": watched.is_broken,
                "broken": watched.broken,
                "evidence": watched.alarm.strength,
            }
            for watched in memory.watched
        ],
        "alerts": list(memory.alerts)[::-1],
    }


def identify(settings: WatchSettings, model: Model | Detector) -> dict[str, Any]:
    """The settings that must be unchanged for a watch to continue."""
    return {
        "source": redact(settings.source),
        "video": _read_beginning(settings.source),
        "model": model.fingerprint,
        "block": settings.block,
        "period": settings.period,
        "rate": settings.rate,
    }


def _read_beginning(source: str) -> str | None:
    """Identifies a video file by its beginning, so that a file that grows remains the same."""
    if is_live(source) or not Path(source).is_file():
        return None
    with Path(source).open("rb") as file:
        return f"content {fingerprint(file.read(BEGINNING))[:12]}"


def read_memory(settings: WatchSettings, model: Model | Detector, out: Path) -> Memory:
    """The state of an earlier watch of the folder, or a new one.

    Raises `UsageError` where it was of another source or model, or its file is damaged.
    """
    watched = tuple(watch_promise(promise, settings.every) for promise in settings.promises)
    fresh = Memory(began=read_clock(), reference=Reference(settings.reference), watched=watched)
    try:
        record = read_checked(out / STATE)
    except FileNotFoundError:
        return fresh
    if record is None or not record.protected:
        raise UsageError(
            f"'{out / STATE}' is damaged; delete it to start again, or choose another --out"
        )
    content = record.content
    own = identify(settings, model)
    if content["identity"] != own:
        other = [name for name in own if content["identity"].get(name) != own[name]]
        raise UsageError(
            f"'{out}' holds a watch with another {other[0]} "
            f"({content['identity'].get(other[0])}); choose another --out"
        )
    return _resume(fresh, content, settings)


def _resume(fresh: Memory, content: Mapping[str, Any], settings: WatchSettings) -> Memory:
    counts = FrameCounts(**content["counts"])
    counts.received = int(counts.received)
    before = {entry["promise"]: entry for entry in content["promises"]}
    reference = Reference(**content["reference"])
    reference.ranges = {name: (low, high) for name, (low, high) in reference.ranges.items()}
    memory = Memory(
        counts=counts,
        processed=content["processed"],
        failed=content["failed"],
        starts=content["starts"],
        began=content["began"],
        mark=FeedMark.resume(content["mark"]),
        observer=content["observer"],
        series={name: Series.resume(entry) for name, entry in content["series"].items()},
        reference=reference,
        # earlier versions wrote none
        repeats=RepeatCount(**content.get("repeats", {})),
        watched=tuple(
            entry.resume(before[str(entry.promise)], settings.every)
            if str(entry.promise) in before
            else entry
            for entry in fresh.watched
        ),
    )
    memory.alerts.extend(content["alerts"])
    return memory
