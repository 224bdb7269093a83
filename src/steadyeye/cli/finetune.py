"""`steadyeye finetune`: a model trained further on the user's data; the result is a model."""

from typing import Annotated

import typer

from steadyeye.cli.options import ClassMap, JobFile, Out, Quiet, Shown, Workers, app

SPLIT, TRAINING, AFTER = "What is held out", "Training", "Before and after"


@app.command()
def finetune(
    job: JobFile = None,
    model: Annotated[
        str | None, typer.Option(help="The model to begin with, e.g. efficientnet_lite0.")
    ] = None,
    data: Annotated[str | None, typer.Option(help="Labelled data to learn from.")] = None,
    out: Out = None,
    val: Annotated[
        str | None, typer.Option(help="Other data to be judged by.", rich_help_panel=SPLIT)
    ] = None,
    holdout: Annotated[
        float | None, typer.Option(help="Or the share held out, e.g. 0.2.", rich_help_panel=SPLIT)
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Whole videos, or the last part of each: video or time.", rich_help_panel=SPLIT
        ),
    ] = None,
    gap: Annotated[
        int | None,
        typer.Option(help="Frames left out before the held ones, by time.", rich_help_panel=SPLIT),
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="Classes the labels are mapped onto: vid30, ytbb or a file.")
    ] = None,
    class_map: ClassMap = None,
    multi_label: Annotated[
        bool, typer.Option("--multi-label", help="Learn every label of an image.")
    ] = False,
    augment: Annotated[
        str | None,
        typer.Option(help="Operators for what is learned from, e.g. 'jpeg(levels=0:30)'."),
    ] = None,
    mirror: Annotated[
        bool, typer.Option("--mirror", help="Mirror half of what is learned from.")
    ] = False,
    from_scratch: Annotated[
        bool,
        typer.Option("--from-scratch", help="Draw all weights anew.", rich_help_panel=TRAINING),
    ] = False,
    epochs: Annotated[
        int | None, typer.Option(help="Passes over the data, at most.", rich_help_panel=TRAINING)
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(help="Steps instead of epochs.", rich_help_panel=TRAINING)
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(help="Images a step, over all processes.", rich_help_panel=TRAINING),
    ] = None,
    optimizer: Annotated[
        str | None, typer.Option(help="adam or sgd.", rich_help_panel=TRAINING)
    ] = None,
    lr: Annotated[
        str | None,
        typer.Option(help="Learning rate, or 'search' for 1e-3 … 1e-5.", rich_help_panel=TRAINING),
    ] = None,
    momentum: Annotated[
        float | None, typer.Option(help="Of SGD [0.9].", rich_help_panel=TRAINING)
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(help="Of the forward pass: fp32, bf16, fp16.", rich_help_panel=TRAINING),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(help="Rounds without gain before it stops.", rich_help_panel=TRAINING),
    ] = None,
    checkpoint_every: Annotated[
        int | None, typer.Option(help="Steps between checkpoints [100].", rich_help_panel=TRAINING)
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of order, weights and split [0].", rich_help_panel=TRAINING)
    ] = None,
    then: Annotated[
        list[str] | None,
        typer.Option(help="Data both models are measured on afterwards.", rich_help_panel=AFTER),
    ] = None,
    then_operators: Annotated[
        str | None,
        typer.Option(help="Operators of their sweeps, e.g. 'jpeg'.", rich_help_panel=AFTER),
    ] = None,
    then_levels: Annotated[
        str | None, typer.Option(help="Levels of the sweeps.", rich_help_panel=AFTER)
    ] = None,
    then_class_map: Annotated[
        str | None,
        typer.Option(help="Maps the base's classes to the data's.", rich_help_panel=AFTER),
    ] = None,
    workers: Workers = None,
    progress: Shown = "bar",
    quiet: Quiet = False,
) -> None:
    """Train a model further on labelled data; stopped, the same command goes on where it was."""
    from steadyeye.cli import finetune_work

    flags = {
        "model": model,
        "data": data,
        "out": out,
        "val": val,
        "holdout": holdout,
        "by": by,
        "gap": gap,
        "classes": classes,
        "class_map": class_map,
        "multi_label": multi_label or None,
        "augment": augment,
        "mirror": mirror or None,
        "from_scratch": from_scratch or None,
        "epochs": epochs,
        "iterations": iterations,
        "batch": batch,
        "optimizer": optimizer,
        "lr": lr,
        "momentum": momentum,
        "precision": precision,
        "patience": patience,
        "every": checkpoint_every,
        "seed": seed,
        "then": then,
        "then_operators": then_operators,
        "then_levels": then_levels,
        "then_class_map": then_class_map,
        "workers": workers,
    }
    finetune_work.finetune(job, flags, "none" if quiet else progress)
