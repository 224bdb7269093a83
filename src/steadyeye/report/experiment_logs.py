"""Finished runs in experiment trackers: MLflow, Weights & Biases, TensorBoard and DVCLive.

The packages are the user's own install, and take their settings as always: a server or an
experiment from `MLFLOW_TRACKING_URI` and `MLFLOW_EXPERIMENT_NAME`, a project and the mode from
`WANDB_PROJECT` and `WANDB_MODE`. A run that is logged again replaces its earlier log.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import time
from types import MappingProxyType
from typing import Any

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.files import Place
from steadyeye.core.types import Evaluated, Result

PROJECT = "steadyeye"


@dataclass(frozen=True)
class LoggedRun:
    """The content of a log for one model on one source.

    `name`: "MODEL on DATA". `mark`: the same whenever these predictions are logged. `parameters`:
    the job, the versions and the commit. `numbers`: of each metric the value, and under its name
    with `/low`, `/high` and `/n` the interval and the samples; shares are in 0…1. `folder`: of the
    run. `files`: the report and its numbers.
    """

    name: str
    mark: str
    parameters: Mapping[str, str]
    numbers: Mapping[str, float]
    folder: Path
    files: tuple[Path, ...]


def check_trackers(names: Sequence[str]) -> None:
    """Raises `UsageError` for an unknown tracker, or if its package is missing."""
    for name in names:
        if name not in TRACKERS:
            raise unknown("tracker", name, tuple(TRACKERS))
        if find_spec(name) is None:
            raise UsageError(f"--log {name} needs its package; pip install {name}")


def log_run(
    folder: Place, evaluated: Sequence[Evaluated], record: Mapping[str, Any], names: Sequence[str]
) -> list[str]:
    """Logs every model and source of a run to each tracker; returns one line each on its place.

    `record`: the content of `run.json`. Raises `UsageError` if a tracker fails; earlier logs and
    the run remain.
    """
    check_trackers(names)
    if not isinstance(folder, Path):
        raise UsageError(f"--log needs a run on this machine; '{folder}' is in a store")
    lines = []
    for name in names:
        for entry in evaluated:
            logged = describe_run(folder, entry, record)
            try:
                lines.append(TRACKERS[name](logged))
            except Exception as error:
                reason = " ".join(str(error).split())[:300]
                raise UsageError(
                    f"{name} cannot log {logged.name}: {type(error).__name__}: {reason}; the run "
                    "is finished, repeat the command to log it"
                ) from error
    return lines


def describe_run(folder: Path, evaluated: Evaluated, record: Mapping[str, Any]) -> LoggedRun:
    """The log of one model on one source."""
    predictions = evaluated.predictions
    job = {key: value for key, value in record["job"].items() if value not in (None, "", [], 0)}
    parameters = {
        f"job.{key}": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in job.items()
    }
    parameters |= {f"version.{key}": str(v) for key, v in record.get("provenance", {}).items()}
    parameters |= {"model": predictions.model, "data": predictions.data}
    numbers: dict[str, float] = {}
    for result in evaluated.results.values():
        numbers |= _list_numbers(result)
    names = ("report.html", "results.json")
    return LoggedRun(
        name=f"{predictions.model} on {predictions.data}",
        mark=fingerprint(predictions.model, predictions.fingerprint, predictions.content),
        parameters=parameters,
        numbers=numbers,
        folder=folder,
        files=tuple(folder / name for name in names if (folder / name).exists()),
    )


def _list_numbers(result: Result) -> dict[str, float]:
    name = encode_name(result.name)
    parts = {"": result.value, "/low": result.low, "/high": result.high}
    known = {f"{name}{end}": float(v) for end, v in parts.items() if v is not None}
    return known | {f"{name}/n": float(result.n)} if known else {}


def encode_name(name: str) -> str:
    """A name with letters, digits, `_` and `.` alone, which every tracker takes.

    Example:
        >>> encode_name("pm_k(k=10)"), encode_name("map(iou=coco)")
        ('pm_k_k_10', 'map_iou_coco')

    """
    return re.sub(r"[^\w.]+", "_", name).strip("_")


def _log_mlflow(run: LoggedRun) -> str:
    import mlflow

    experiment = mlflow.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT))
    earlier = mlflow.search_runs(
        [experiment.experiment_id], f"tags.steadyeye = '{run.mark}'", output_format="list"
    )
    chosen = (
        {"run_id": earlier[0].info.run_id}
        if earlier
        else {"run_name": run.name, "tags": {PROJECT: run.mark}}
    )
    with mlflow.start_run(**chosen) as active:
        # parameters cannot be changed, and are those of the same job
        if not earlier:
            mlflow.log_params({key: value[:6_000] for key, value in run.parameters.items()})
        mlflow.log_metrics(dict(run.numbers))
        for file in run.files:
            mlflow.log_artifact(str(file))
    return f"mlflow: {run.name}, run {active.info.run_id} at {mlflow.get_tracking_uri()}"


def _log_wandb(run: LoggedRun) -> str:
    import wandb

    started = wandb.init(
        project=os.environ.get("WANDB_PROJECT", PROJECT),
        name=run.name,
        id=run.mark,
        resume="allow" if os.environ.get("WANDB_MODE", "online") == "online" else None,
        config=dict(run.parameters),
        dir=str(run.folder),
        settings=wandb.Settings(silent=True),
    )
    try:
        started.summary.update(dict(run.numbers))
        report = wandb.Artifact(f"report-{run.mark}", type="report")
        for file in run.files:
            report.add_file(str(file))
        started.log_artifact(report)
    finally:
        started.finish()
    return f"wandb: {run.name}, {started.dir if started.offline else started.url}"


def _log_tensorboard(run: LoggedRun) -> str:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.plugins.text import metadata
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    folder = run.folder / "tensorboard" / encode_name(run.name)
    for earlier in folder.glob("events.out.tfevents.*"):
        earlier.unlink()
    writer = EventFileWriter(str(folder))
    values = [Summary.Value(tag=name, simple_value=v) for name, v in run.numbers.items()]
    rows = "\n".join(f"| {key} | {text} |" for key, text in run.parameters.items())
    table = f"| parameter | value |\n|---|---|\n{rows}".encode()
    tensor = TensorProto(dtype="DT_STRING", string_val=[table])
    about = metadata.create_summary_metadata("parameters", "")
    values.append(Summary.Value(tag="parameters", tensor=tensor, metadata=about))
    writer.add_event(Event(wall_time=time(), step=0, summary=Summary(value=values)))
    writer.close()
    return f"tensorboard: {run.name}, tensorboard --logdir {folder.parent}"


def _log_dvclive(run: LoggedRun) -> str:
    from dvclive import Live

    folder = run.folder / "dvclive" / encode_name(run.name)
    # DVC's own files belong to the project of the user, and not beside a run
    with Live(str(folder), dvcyaml=None, save_dvc_exp=False) as live:
        live.log_params(dict(run.parameters))
        for name, value in run.numbers.items():
            # a slash would make a number a folder of its own interval
            live.log_metric(name.replace("/", "."), value, plot=False)
    return f"dvclive: {run.name}, {folder}"


TRACKERS: Mapping[str, Callable[[LoggedRun], str]] = MappingProxyType(
    {
        "mlflow": _log_mlflow,
        "wandb": _log_wandb,
        "tensorboard": _log_tensorboard,
        "dvclive": _log_dvclive,
    }
)
"""Package → what logs a run to it."""
