"""`steadyeye finetune`: a model trained further on the user's data; the result is a model."""

from typing import Annotated, Any

import typer

from steadyeye.cli.options import ClassMap, JobFile, Out, Quiet, Shown, Workers, app, shown


def _option(help_: str, panel: str | None = None, name: str = "") -> Any:
    return typer.Option(*([name] if name else []), help=help_, rich_help_panel=panel)


HELD, TRAINING, AFTER = "What is held out", "Training", "Before and after"

Base = Annotated[str | None, _option("The model to begin with, e.g. efficientnet_lite0.")]
Learned = Annotated[str | None, _option("Labelled data to learn from.")]
Onto = Annotated[str | None, _option("Classes the labels are mapped onto: vid30, ytbb or a file.")]
Several = Annotated[bool | None, _option("Learn every label of an image.", None, "--multi-label")]
Augment = Annotated[
    str | None, _option("Operators for what is learned from, e.g. 'jpeg(levels=0:30)'.")
]
Mirror = Annotated[bool | None, _option("Mirror half of what is learned from.", None, "--mirror")]

Val = Annotated[str | None, _option("Other data to be judged by.", HELD)]
Holdout = Annotated[float | None, _option("Or the share held out, e.g. 0.2.", HELD)]
By = Annotated[str | None, _option("Whole videos, or the end of each: video or time.", HELD)]
Gap = Annotated[int | None, _option("Frames left out before the held ones, by time.", HELD)]

Scratch = Annotated[bool | None, _option("Draw all weights anew.", TRAINING, "--from-scratch")]
Epochs = Annotated[int | None, _option("Passes over the data, at most.", TRAINING)]
Iterations = Annotated[int | None, _option("Steps instead of epochs.", TRAINING)]
Batch = Annotated[int | None, _option("Images a step, over all processes.", TRAINING)]
Optimizer = Annotated[str | None, _option("adam or sgd.", TRAINING)]
Rate = Annotated[str | None, _option("Learning rate, or 'search' for 1e-3 … 1e-5.", TRAINING)]
Momentum = Annotated[float | None, _option("Of SGD [0.9].", TRAINING)]
Precision = Annotated[str | None, _option("Of the forward pass: fp32, bf16, fp16.", TRAINING)]
Patience = Annotated[int | None, _option("Rounds without gain before it stops.", TRAINING)]
Every = Annotated[
    int | None, _option("Steps between checkpoints [100].", TRAINING, "--checkpoint-every")
]
Seed = Annotated[int | None, _option("Of order, new weights and split [0].", TRAINING)]

Then = Annotated[list[str] | None, _option("Data both models are measured on.", AFTER)]
Sweeps = Annotated[str | None, _option("Operators of their sweeps, e.g. 'jpeg'.", AFTER)]
Levels = Annotated[str | None, _option("Levels of the sweeps.", AFTER)]
BaseMap = Annotated[str | None, _option("Maps the base's classes to the data's.", AFTER)]


@app.command()
def finetune(
    context: typer.Context,
    job: JobFile = None,
    model: Base = None,
    data: Learned = None,
    out: Out = None,
    val: Val = None,
    holdout: Holdout = None,
    by: By = None,
    gap: Gap = None,
    classes: Onto = None,
    class_map: ClassMap = None,
    multi_label: Several = None,
    augment: Augment = None,
    mirror: Mirror = None,
    from_scratch: Scratch = None,
    epochs: Epochs = None,
    iterations: Iterations = None,
    batch: Batch = None,
    optimizer: Optimizer = None,
    lr: Rate = None,
    momentum: Momentum = None,
    precision: Precision = None,
    patience: Patience = None,
    every: Every = None,
    seed: Seed = None,
    then: Then = None,
    then_operators: Sweeps = None,
    then_levels: Levels = None,
    then_class_map: BaseMap = None,
    workers: Workers = None,
    progress: Shown = "bar",
    quiet: Quiet = False,
) -> None:
    """Train a model further on labelled data; stopped, the same command goes on where it was."""
    from steadyeye.cli import finetune_work

    rest = ("job", "progress", "quiet")
    asked = {name: value for name, value in context.params.items() if name not in rest}
    finetune_work.finetune(job, asked, shown(context))
