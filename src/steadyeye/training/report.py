"""What a training says in its report: curves of loss, judgement and rate, and where it stopped."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steadyeye.core.format import number_of
from steadyeye.core.report_types import Figure, Section, Table, Topic
from steadyeye.report.charts.lines import lines
from steadyeye.report.charts.style import chart
from steadyeye.report.comparison.training_gains import Gain, TrainingGains, table
from steadyeye.report.render.document import Document
from steadyeye.training import job
from steadyeye.training.base_comparison import Beside
from steadyeye.training.curves import STEP, curve, figures, format_measure, name_measure, numbers
from steadyeye.training.lr_search import read
from steadyeye.training.metrics_log import History, TrainingRound


def document(
    out: Path, record: Mapping[str, Any], went: History, both: Beside | None = None
) -> Document:
    """The report of a training. `record`: of its run.json; `both`: the base beside what came."""
    found = record.get("search")
    return Document(
        title="Result of training",
        headline=summarize(record, went, both),
        evaluated=(),
        sections=(
            *([_beside(both)] if both else []),
            _curves(record, went),
            *([_search(went, found)] if found else []),
            _data(record),
        ),
        provenance={str(out): record},
        commands=(
            job.command(record["job"], str(out)),
            f"steadyeye run --model \"torch(path='{out}')\" --data …",
        ),
    )


def summarize(
    record: Mapping[str, Any], went: History, both: Beside | None = None
) -> tuple[str, ...]:
    """What came of it, a sentence a line: the base as it was given, its limits, then the loss."""
    n = record["data"]["held"]["n"]
    what = f"{record['base']['name']} on {record['data']['train']['name']}"
    best = went.best
    if best is None:
        return (f"{what}: no validation before it {went.ended or 'ended'}.",)
    rose = "; ".join(
        f"{name_measure(name)} from {format_measure(name, went.start.get(name))} "
        f"to {format_measure(name, best.held[name])}"
        for name in numbers(went)
    )
    began = "" if record["task"].get("head", {}).get("kept") else " (it started with a new head)"
    course = f"{rose}, on {n:,} held-out examples, over {number_of(best.step, 'step')}{began}"
    if both is None:
        return (f"{what}: {course}.",)
    finding, *limits = both.sentences
    opening = f"{what}: {finding[0].lower()}{finding[1:]}"
    return (opening, *limits, f"In training: {course}.", *both.method)


def _beside(both: Beside) -> Section:
    """The base as it was given and the trained model, on the same held examples."""
    tables = () if both.gain is None else (table("Before and after", [_name_models(both.gain)]),)
    return Section(
        topic=Topic.TRAINING,
        place=0,
        title=both.title,
        claim=both.claim,
        text=(*both.sentences, *both.method),
        tables=tables,
    )


def _name_models(found: Gain) -> TrainingGains:
    return TrainingGains("the base model", "the fine-tuned model", (found,))


def _curves(record: Mapping[str, Any], went: History) -> Section:
    return Section(
        topic=Topic.TRAINING,
        place=1,
        title=_title(went),
        text=(_ending(record, went), _describe_data(record)),
        figures=tuple(figures(went)),
        tables=(_table(went),) if went.rounds else (),
    )


def _title(went: History) -> str:
    best, watched = went.best, went.watched
    if best is None:
        return "Training ended before the first validation"
    before, after = went.start.get(watched), best.held[watched]
    first, last = format_measure(watched, before), format_measure(watched, after)
    return (
        f"Course of training: {name_measure(watched)} on the held-out data {first} at first, "
        f"{last} at step {best.step:,}"
    )


def _better(went: History) -> bool:
    before, best = went.start.get(went.watched), went.best
    if before is None or best is None:
        return best is not None
    after = best.held[went.watched]
    assert after is not None
    return after < before if went.lower else after > before


def _ending(record: Mapping[str, Any], went: History) -> str:
    best, recipe = went.best, record["recipe"]
    text = f"Training ended because {went.ended or 'it was stopped'}. "
    if best is None:
        return text + "No weights were kept."
    text += (
        f"The kept weights are those after step {best.step:,} of {went.step:,} (epoch "
        f"{best.epoch:.4g}), with the best {name_measure(went.watched)} on the held-out data; "
        f"{recipe['optimizer']}, learning rate {_rates(went)}, batches of {recipe['batch']}, "
        f"{recipe['precision']}."
    )
    if not _better(went):
        text += (
            " Before the first step it was "
            f"{format_measure(went.watched, went.start.get(went.watched))}: "
            "no step improved it on these examples."
        )
    return text


def _rates(went: History) -> str:
    first, last = went.rounds[0].rate, went.rounds[-1].rate
    return f"{first:g} throughout" if first == last else f"{first:g} at first, {last:g} at the end"


def _describe_data(record: Mapping[str, Any]) -> str:
    train, held = record["data"]["train"], record["data"]["held"]
    return (
        f"Trained on {number_of(train['n'], 'example')} of {train['name']}; validated on "
        f"{held['n']:,} held-out examples of {held['name']}. Frames of one video are similar, so "
        "these curves have no intervals. They only choose the checkpoint; for unbiased values "
        "evaluate the model on other data."
    )


def _table(went: History) -> Table:
    names = numbers(went)
    rows = [
        ("0", "at first", "—", "—", *(format_measure(name, went.start.get(name)) for name in names))
    ]
    rows += [_row(each, names, each == went.best) for each in went.rounds]
    header = (
        "step",
        "epoch",
        "learning rate",
        "loss",
        *(f"held-out {name_measure(n)}" for n in names),
    )
    return Table("All rounds; ● marks the kept weights", header, tuple(rows))


def _row(each: TrainingRound, names: Sequence[str], best: bool) -> tuple[str, ...]:
    held = (format_measure(name, each.held[name]) for name in names)
    step = f"{each.step:,}{' ●' if best else ''}"
    return (step, f"{each.epoch:.4g}", f"{each.rate:g}", f"{each.loss:.4f}", *held)


def _search(went: History, found: Mapping[str, Any]) -> Section:
    tried = [read(each) for each in found["tried"]]
    names = list(tried[0].held or found["start"])
    rows = tuple(
        (
            f"{each.rate:g}{' ●' if each.rate == found['rate'] else ''}",
            each.fault or f"{each.loss:.4f}",
            *(format_measure(name, each.held.get(name)) for name in names),
        )
        for each in tried
    )
    curves = [row for each in tried for row in curve(each.losses, f"{each.rate:g}")]
    y = {"field": "loss", "type": "quantitative", "title": "loss", "scale": {"type": "sqrt"}}
    line = {
        "mark": {"type": "line", "tooltip": True},
        "encoding": {"x": STEP, "y": y, **lines([f"{t.rate:g}" for t in tried], "of")},
    }
    held = (f"held-out {name_measure(name)}" for name in names)
    return Section(
        topic=Topic.TRAINING,
        place=2,
        title=f"Learning rate {found['rate']:g} was chosen among {len(tried)}",
        text=(
            f"Each was tried for {number_of(found['steps'], 'step')} from the same weights, on "
            f"the same batches, and compared by {name_measure(went.watched)} on the held-out "
            "data; ties are broken by the loss. So the held-out data chose the learning rate too.",
        ),
        figures=(
            Figure(
                name="training_search",
                caption="Training loss of each learning rate (moving mean over steps).",
                alt=f"Losses of {len(tried)} trials by step; the table has the last values.",
                spec={**chart([line], height=240), "data": {"values": curves}},
            ),
        ),
        tables=(Table("All learning rates", ("learning rate", "loss", *held), rows),),
    )


def _data(record: Mapping[str, Any]) -> Section:
    """What was learned from, and what was held out."""
    sides = record["data"]
    rows = tuple(
        (what, each["name"], f"{each['n']:,}", each["fingerprint"])
        for what, each in (("training", sides["train"]), ("held out", sides["held"]))
    )
    return Section(
        topic=Topic.TRAINING,
        place=3,
        title=f"Trained classes: {len(sides['classes'])}",
        text=tuple(
            f"{note[:1].upper()}{note[1:]}."
            for note in (*sides["notes"], *record["task"].get("notes", ()))
        ),
        tables=(
            Table(
                "Training and held-out data",
                ("", "data", "examples", "fingerprint"),
                rows,
                open=True,
            ),
        ),
    )
