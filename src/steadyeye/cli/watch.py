"""The command that watches a stream: measurements, and promises kept or broken."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steadyeye.cli.options import command
from steadyeye.cli.run import say_assumed
from steadyeye.cli.terminal import show, show_table

if TYPE_CHECKING:
    from steadyeye.core.types import Detector, Model
    from steadyeye.watch.memory import WatchSettings
    from steadyeye.watch.session import Watch

BROKEN = 1
"""The exit code after a broken promise, as in `gate`."""


@dataclass(frozen=True)
class ServerOptions:
    """The address of the page and of the metrics."""

    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port of the live page; default: 8421, or a free one."),
    ] = None
    page: Annotated[bool, typer.Option("--page/--no-page", help="Serve the live page.")] = True
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port that serves OpenMetrics at /metrics; default: none."
        ),
    ] = None
    metrics_host: Annotated[
        str, typer.Option(help="Address of this machine that serves OpenMetrics.")
    ] = "127.0.0.1"
    webhook: Annotated[
        list[str] | None,
        typer.Option(help="http(s) address that receives each alert as JSON; may be repeated."),
    ] = None


@dataclass(frozen=True)
class TimeOptions:
    """Lengths of time."""

    fps: Annotated[
        float | None, typer.Option(help="Maximum number of frames per second; default: all.")
    ] = None
    block: Annotated[
        float,
        typer.Option(
            min=1, max=3600, help="Length in seconds of a block, which gives one value per measure."
        ),
    ] = 30.0
    period: Annotated[
        float, typer.Option(min=10, help="Length in seconds of the period of an interval.")
    ] = 3600.0
    reference: Annotated[
        float,
        typer.Option(min=1, help="Length in seconds of the start that drift is compared with."),
    ] = 600.0
    days: Annotated[
        float,
        typer.Option(
            min=0.001, help="Days in which at most one false alarm per promise is expected."
        ),
    ] = 20.0


StreamSource = Annotated[
    str,
    typer.Argument(
        help="Video, folder that receives files, stream (rtsp://, http:// of HLS) or camera "
        "(/dev/video0)."
    ),
]
Promises = Annotated[
    list[str] | None,
    typer.Option(
        help="Promise whose breach raises an alert, e.g. 'blink_rate <= 5%'; may be repeated."
    ),
]


@command()
def watch(
    *,
    source: StreamSource,
    model: Annotated[
        str, typer.Option(help="Model: a spec or short form, as for `steadyeye run`.")
    ],
    alert: Promises = None,
    stop_at_alert: Annotated[
        bool, typer.Option("--stop-at-alert", help="End with exit code 1 at the first alert.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(
            help="Folder of the watch; default: watches/<source>-<key>, where the key depends on "
            "source and model."
        ),
    ] = None,
    keep: Annotated[
        str, typer.Option(help="Disk space for the frames that broke a promise.")
    ] = "200MB",
    times: TimeOptions,
    server: ServerOptions,
) -> None:
    """Watch a stream: rates with bounds that hold at any time, alerts, a live page."""
    from steadyeye.watch.frame_ring import read_size
    from steadyeye.watch.memory import WatchSettings
    from steadyeye.watch.promises import read_promise

    settings = WatchSettings(
        source=source,
        model=model,
        promises=tuple(dict.fromkeys(map(read_promise, alert or ()))),
        block=times.block,
        period=times.period,
        reference=times.reference,
        days=times.days,
        keep=read_size(keep),
        rate=times.fps,
        stop_at_alert=stop_at_alert,
    )
    _check(settings)
    folder = Path(out) if out else Path("watches") / name_folder(source, model)
    if _watch(settings, folder, server):
        raise typer.Exit(BROKEN)


def _check(settings: "WatchSettings") -> None:
    """Raises `UsageError` for wrong options, before a model is read."""
    from steadyeye.core.errors import UsageError
    from steadyeye.watch.feeds import check_source

    check_source(settings.source)
    if settings.rate is not None and not settings.rate > 0:
        raise UsageError(f"--fps {settings.rate:g}: give more than 0 frames a second")
    if settings.period < settings.block:
        raise UsageError(
            f"--period {settings.period:g} is shorter than a block of {settings.block:g} s; give "
            "a longer one"
        )
    if settings.promises and settings.every < 1:
        raise UsageError(
            f"--days {settings.days:g} is shorter than a block of {settings.block:g} s, so that "
            "every block may raise a false alarm; give more days"
        )


def _watch(settings: "WatchSettings", folder: Path, options: ServerOptions) -> bool:
    """Watches the stream; returns whether a promise was broken at the end."""
    from steadyeye.core.storage.run_lock import hold_run
    from steadyeye.predictions.json_record import check_results
    from steadyeye.watch import server
    from steadyeye.watch.feeds import open_feed
    from steadyeye.watch.frames import Feed
    from steadyeye.watch.memory import Memory
    from steadyeye.watch.session import Watch
    from steadyeye.watch.webhook import Webhooks

    check_results(folder, "watch")
    webhooks = Webhooks(options.webhook or (), _say_at)
    model = _build_model(settings)
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        stack.enter_context(hold_run(folder))

        def feed(memory: Memory) -> Feed:
            return open_feed(settings.source, memory.counts, settings.rate, memory.mark)

        watched = Watch(settings, model, feed, folder, _say_at)
        watched.webhooks = webhooks
        stack.callback(webhooks.close, 10)
        if options.page:
            answer = partial(server.answer_page, watched)
            page = stack.enter_context(server.serving(answer, server.ADDRESS, options.port))
            _say_at(f"page: {server.address_of(page)}")
        if options.metrics_port is not None:
            answer = partial(server.answer_metrics, watched)
            endpoint = server.serving(answer, options.metrics_host, options.metrics_port)
            _say_at(f"metrics: {server.address_of(stack.enter_context(endpoint))}metrics")
        _say_at(f"watching {watched.latest['source']} with {model.name}; stored in {folder}")
        watched.run()
    _say_result(watched)
    return watched.was_broken


def _build_model(settings: "WatchSettings") -> "Model | Detector":
    from steadyeye.core import plugins
    from steadyeye.core.spec import parse
    from steadyeye.runner.short_forms import expand_model

    spec = expand_model(settings.model)
    if spec != settings.model:
        show(f"model {settings.model}: {spec}")
    model: Model | Detector = plugins.build("models", parse(spec))
    say_assumed([spec], [model])
    return model


def name_folder(source: str, model: str) -> str:
    """The name of a watch's folder: the same for the same command, so that it is continued."""
    from steadyeye.core.seeds import fingerprint
    from steadyeye.watch.frames import redact

    name = "".join(c if c.isalnum() else "-" for c in Path(redact(source)).name)[:40].strip("-")
    return f"{name or 'watch'}-{fingerprint(redact(source), model)[:6]}"


def _say_at(text: str) -> None:
    """Prints a line with the time, flushed so that a pipe gets it immediately."""
    from datetime import datetime

    show(f"{datetime.now():%Y-%m-%d %H:%M:%S}  {text}")
    sys.stdout.flush()


def _say_result(watched: "Watch") -> None:
    from steadyeye.core.format import percent, span

    rows: list[Sequence[str]] = []
    for name, measure in watched.latest["measures"].items():
        total = measure["total"]
        ends = span(total["low"], total["high"], "share")
        rows.append((percent(total["value"]), ends, f"{total['n']:,}", name))
    if rows:
        show_table(("value", "95 % interval", "blocks", "measure"), rows, 3)
