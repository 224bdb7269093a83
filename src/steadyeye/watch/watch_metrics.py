"""The state of a watch as metrics of OpenMetrics."""

from collections.abc import Mapping, Sequence
from typing import Any

from steadyeye.core.open_metrics import Family, write_families

FRAMES = ("received", "processed", "left_out", "thinned", "damaged", "failed")


def write_metrics(state: Mapping[str, Any], start: Mapping[str, Any]) -> str:
    """The text of `Watch.describe`'s values.

    `start`: those values at the start of the process, from which counters count: Prometheus takes a
    counter that is lower than before for one that restarted at 0.
    """
    about = {"source": state["source"], "model": state["model"]}
    families: list[Family] = [
        ("steadyeye_watch", "info", "Source and model of the watch.", [("_info", about, 1)]),
        (
            "steadyeye_up",
            "gauge",
            "1 while the source can deliver frames.",
            [("", {}, int(_is_up(state)))],
        ),
        ("steadyeye_frame_rate", "gauge", "Frames per second.", [("", {}, state["rate"])]),
        *_counts(state, start),
        *_measures(state["measures"]),
        *_promises(state["promises"], start["promises"]),
    ]
    return write_families(families)


def _is_up(state: Mapping[str, Any]) -> bool:
    status = state["status"]
    is_reading = status in ("connected", "waiting for files") or status.startswith("reading")
    return is_reading and not state["is_over"]


def _counts(state: Mapping[str, Any], start: Mapping[str, Any]) -> list[Family]:
    """Families of frames, the stream, stored frames and posts."""
    counts = {name: value - start["counts"][name] for name, value in state["counts"].items()}
    frames, posts = state["frames"], state["webhooks"]
    by_state = [("_total", {"state": name}, counts[name]) for name in FRAMES]
    by_arrival = [("_total", {"state": name}, posts[name]) for name in ("sent", "failed")]
    lost, down = counts["lost_streams"], counts["seconds_down"]
    return [
        ("steadyeye_frames", "counter", "Frames by their state.", by_state),
        ("steadyeye_streams_lost", "counter", "Losses of the stream.", [("_total", {}, lost)]),
        ("steadyeye_down_seconds", "counter", "Seconds without a stream.", [("_total", {}, down)]),
        ("steadyeye_stored_frames", "gauge", "Stored frames.", [("", {}, frames["number"])]),
        (
            "steadyeye_stored_bytes",
            "gauge",
            "Bytes of the stored frames.",
            [("", {}, frames["bytes"])],
        ),
        ("steadyeye_webhook_posts", "counter", "Webhook posts by outcome.", by_arrival),
    ]


def _measures(measures: Mapping[str, Any]) -> list[Family]:
    """One gauge each for the value, its bounds and its number of blocks."""
    about = {
        "value": "Mean of the blocks, 0 to 1.",
        "low": "Lower end of the 95 % interval, valid at any time.",
        "high": "Upper end of the 95 % interval, valid at any time.",
        "n": "Number of blocks.",
    }
    names = {"value": "steadyeye_measure", "n": "steadyeye_measure_blocks"}
    return [
        (
            names.get(part, f"steadyeye_measure_{part}"),
            "gauge",
            text,
            [
                ("", {"measure": name, "over": over}, measure[over][part])
                for name, measure in measures.items()
                for over in ("period", "total")
            ],
        )
        for part, text in about.items()
    ]


def _promises(
    promises: Sequence[Mapping[str, Any]], start: Sequence[Mapping[str, Any]]
) -> list[Family]:
    # the same promises in the same order
    promises = [
        {**now, "alerts": now["broken"] - before["broken"]}
        for now, before in zip(promises, start, strict=True)
    ]
    parts = (
        ("steadyeye_promise_broken", "gauge", "1 while the promise is broken.", "", "is_broken"),
        ("steadyeye_alerts", "counter", "Times the promise was broken.", "_total", "alerts"),
        (
            "steadyeye_evidence",
            "gauge",
            "Evidence for the next alert, as a share of what the alert needs.",
            "",
            "evidence",
        ),
    )
    return [
        (
            name,
            kind,
            text,
            [(end, {"promise": entry["promise"]}, float(entry[key])) for entry in promises],
        )
        for name, kind, text, end, key in parts
    ]
