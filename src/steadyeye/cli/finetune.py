"""`steadyeye finetune`: trains a model further on the user's data."""

from dataclasses import asdict, dataclass
from shlex import quote
from typing import Annotated, Any

import typer

from steadyeye.cli.options import JobFile, ProgressOptions, Workers, command
from steadyeye.cli.progress import watching
from steadyeye.cli.terminal import say, show
from steadyeye.core.code_permission import OPTION


def _option(help_: str, panel: str | None = None, name: str = "") -> Any:
    return typer.Option(*([name] if name else []), help=help_, rich_help_panel=panel)


HELD, TRAINING, AFTER = "Held-out data", "Training", "Comparison before and after"
Text = str | None
Number = int | None
Flag = bool | None


@dataclass(frozen=True)
class TrainingOptions:
    """The options of a training; a job file uses the same names."""

    model: Annotated[
        Text, _option("Base model, e.g. efficientnet_lite0; required here or in the job file.")
    ] = None
    data: Annotated[Text, _option("Labelled training data; required here or in the job file.")] = (
        None
    )
    out: Annotated[
        Text, _option("Folder of the fine-tuned model; required here or in the job file.")
    ] = None
    val: Annotated[Text, _option("Validation data, instead of --holdout.", HELD)] = None
    holdout: Annotated[
        float | None,
        _option("Share of --data to hold out, between 0 and 1, instead of --val.", HELD),
    ] = None
    by: Annotated[
        Text,
        _option("Hold out whole videos ('video') or their ends ('time'); default: video.", HELD),
    ] = None
    gap: Annotated[
        Number,
        _option("Frames left out before the held-out ones; --by time requires it.", HELD),
    ] = None
    classes: Annotated[
        Text,
        _option("Classes to train: a known list (vid30) or a file; default: those of --data."),
    ] = None
    class_map: Annotated[
        Text, _option("Map from the labels of --data to --classes: a .csv or .json file.")
    ] = None
    multi_label: Annotated[
        Flag, _option("Train on all labels of an image, not only on one.", None, "--multi-label")
    ] = None
    augment: Annotated[
        Text, _option("Operators that augment training images, e.g. 'jpeg(levels=0:30)'.")
    ] = None
    mirror: Annotated[
        Flag, _option("Mirror half of the training images at random.", None, "--mirror")
    ] = None
    from_scratch: Annotated[
        Flag,
        _option("Train from random weights, not those of the base.", TRAINING, "--from-scratch"),
    ] = None
    epochs: Annotated[
        Number, _option("Maximum number of epochs; default: 10 for a classifier.", TRAINING)
    ] = None
    iterations: Annotated[
        Number,
        _option("Training steps, instead of --epochs; default: 40000 for a detector.", TRAINING),
    ] = None
    batch: Annotated[
        Number,
        _option("Images per step, over all processes; default: 32, for a detector 8.", TRAINING),
    ] = None
    optimizer: Annotated[
        Text, _option("Optimizer: adam or sgd; default: that of the model's recipe.", TRAINING)
    ] = None
    lr: Annotated[
        Text,
        _option(
            "Learning rate, or 'search' to try five from 1e-3 to 1e-5; default: that of the "
            "model's recipe.",
            TRAINING,
        ),
    ] = None
    momentum: Annotated[float | None, _option("Momentum of SGD; default: 0.9.", TRAINING)] = None
    precision: Annotated[
        Text, _option("Precision of the forward pass: fp32, bf16 or fp16; default: fp32.", TRAINING)
    ] = None
    patience: Annotated[
        Number, _option("Stop after so many validations without improvement.", TRAINING)
    ] = None
    every: Annotated[
        Number, _option("Steps between checkpoints; default: 100.", TRAINING, "--checkpoint-every")
    ] = None
    seed: Annotated[
        Number,
        _option("Random seed of image order, new weights and split; default: 0.", TRAINING),
    ] = None
    then: Annotated[
        list[str] | None,
        _option("Data to compare the base and fine-tuned model on; may be repeated.", AFTER),
    ] = None
    then_operators: Annotated[
        Text, _option("Degradation operators of the comparison, e.g. jpeg; default: none.", AFTER)
    ] = None
    then_levels: Annotated[
        Text, _option("Levels of --then-operators, as for `degrade`; default: all.", AFTER)
    ] = None
    then_class_map: Annotated[
        Text,
        _option("Class map of the base model in the comparison, as for `run`.", AFTER),
    ] = None
    workers: Workers = None


@command()
def finetune(*, job: JobFile = None, options: TrainingOptions, display: ProgressOptions) -> None:
    """Fine-tune a model on labelled data. If it stops, the same command resumes it."""
    try:
        from steadyeye.models.finetuned import checkpoint_format
        from steadyeye.training import before_after, run
        from steadyeye.training import job as training_job
        from steadyeye.training import report as training_report
        from steadyeye.training.engine import first
    except ModuleNotFoundError as error:
        from steadyeye.core import plugins

        raise plugins.not_installed("finetune", error, "train") from error
    # of several processes that train together one speaks
    progress = watching(display.form if first() else "none")
    training = training_job.read(job, asdict(options))
    with progress as watcher:
        plan = run.check(training)
        for line in (run.announcement(plan), *(f"note: {note}" for note in plan.data.notes)):
            watcher.say(line)
        done = run.finetune(plan, watcher)
    if not first():
        return
    say("\n".join(training_report.summarize(done.record, done.history, done.comparison)))
    say(f"ended: {done.history.ended}")
    show(f"report: {(done.out / 'report.html').resolve()}")
    if done.gains is not None:
        for line in before_after.findings(done.gains):
            say(line)
        report = (done.out / run.THEN / "report.html").resolve()
        show(f"before and after: {report}")
        return
    flags = [f" {OPTION} {quote(name)}" for name in checkpoint_format.list_code(done.out)]
    show(f"next: steadyeye run --model \"torch(path='{done.out}')\" --data …{''.join(flags)}")
