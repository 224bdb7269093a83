"""`steadyeye finetune`: a model trained further on the user's data; the result is a model."""

from typing import Annotated, Any

import typer

from steadyeye.cli.options import (
    ClassMap,
    JobFile,
    Out,
    Quiet,
    Shown,
    Workers,
    app,
    choose_progress,
)


def _option(help_: str, panel: str | None = None, name: str = "") -> Any:
    return typer.Option(*([name] if name else []), help=help_, rich_help_panel=panel)


HELD, TRAINING, AFTER = "Held-out data", "Training", "Comparison before and after"

Base = Annotated[str | None, _option("Base model, e.g. efficientnet_lite0.")]
Learned = Annotated[str | None, _option("Labelled training data.")]
Onto = Annotated[str | None, _option("Classes to train: vid30, ytbb or a file.")]
Several = Annotated[
    bool | None, _option("Train on every label of an image, not on one.", None, "--multi-label")
]
Augment = Annotated[str | None, _option("Augmentation operators, e.g. 'jpeg(levels=0:30)'.")]
Mirror = Annotated[bool | None, _option("Mirror half of the training images.", None, "--mirror")]

Val = Annotated[str | None, _option("Validation data.", HELD)]
Holdout = Annotated[float | None, _option("Or a share of --data to hold out, e.g. 0.2.", HELD)]
By = Annotated[
    str | None, _option("Hold out whole videos (video) or the end of each (time).", HELD)
]
Gap = Annotated[
    int | None, _option("With --by time: frames left out before the held-out ones.", HELD)
]

Scratch = Annotated[bool | None, _option("Start from random weights.", TRAINING, "--from-scratch")]
Epochs = Annotated[int | None, _option("Maximum number of epochs.", TRAINING)]
Iterations = Annotated[int | None, _option("Number of steps, instead of epochs.", TRAINING)]
Batch = Annotated[int | None, _option("Batch size, over all processes.", TRAINING)]
Optimizer = Annotated[str | None, _option("Optimizer: adam or sgd.", TRAINING)]
Rate = Annotated[str | None, _option("Learning rate, or 'search' to try 1e-3 … 1e-5.", TRAINING)]
Momentum = Annotated[float | None, _option("Momentum of SGD; default: 0.9.", TRAINING)]
Precision = Annotated[
    str | None, _option("Precision of the forward pass: fp32, bf16, fp16.", TRAINING)
]
Patience = Annotated[
    int | None, _option("Validations without improvement before training stops.", TRAINING)
]
Every = Annotated[
    int | None, _option("Steps between checkpoints; default: 100.", TRAINING, "--checkpoint-every")
]
Seed = Annotated[
    int | None, _option("Random seed of order, new weights and split; default: 0.", TRAINING)
]

Then = Annotated[
    list[str] | None, _option("Data to compare the base and the fine-tuned model on.", AFTER)
]
Sweeps = Annotated[
    str | None, _option("Degradation operators of the comparison, e.g. 'jpeg'.", AFTER)
]
Levels = Annotated[str | None, _option("Degradation levels of the comparison.", AFTER)]
BaseMap = Annotated[str | None, _option("Class map of the base model for the comparison.", AFTER)]


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
    """Fine-tune a model on labelled data. If it stops, the same command resumes it."""
    from steadyeye.cli import finetune_work

    rest = ("job", "progress", "quiet")
    asked = {name: value for name, value in context.params.items() if name not in rest}
    finetune_work.finetune(job, asked, choose_progress(context))
