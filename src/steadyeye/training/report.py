"""The report of a training: curves of loss, validation and learning rate, and its end."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steadyeye.core.format import number_of, percent
from steadyeye.core.report_types import Figure, Section, Table, Topic
from steadyeye.report.charts.specs import PALETTE, chart, layer, lines, shares
from steadyeye.report.comparison.before_after import TrainingGains, tables
from steadyeye.report.render.document import Document
from steadyeye.training import job
from steadyeye.training.before_after import HeldOutComparison
from steadyeye.training.hyperparameters import Steps, learning_rate
from steadyeye.training.lr_search import read
from steadyeye.training.metrics_log import History

POINTS = 400  # the most points of a curve of losses
STEP = {"field": "step", "type": "quantitative", "title": "step", "axis": {"format": "d"}}
SHARES = ("accuracy", "ap", "ap50", "map")


def document(
    out: Path, record: Mapping[str, Any], went: History, both: HeldOutComparison | None = None
) -> Document:
    """The report of a training. `record`: of its run.json; `both`: the comparison with the base."""
    rate_search = record.get("search")
    return Document(
        title="Result of training",
        headline=summarize(record, went, both),
        evaluated=(),
        sections=(
            *([_build_comparison(both)] if both else []),
            Section(
                topic=Topic.TRAINING,
                place=1,
                title=_title(went),
                text=(_ending(record, went), _describe_data(record)),
                figures=tuple(figures(record, went)),
                tables=(_table(went),) if went.rounds else (),
            ),
            *([_search(went, rate_search)] if rate_search else []),
            _data(record),
        ),
        provenance={str(out): record},
        commands=(
            job.command(record["job"], str(out)),
            f"steadyeye run --model \"torch(path='{out}')\" --data …",
        ),
    )


def summarize(
    record: Mapping[str, Any], went: History, both: HeldOutComparison | None = None
) -> tuple[str, ...]:
    """The result, one sentence per line: comparison with the base, its limits, then the loss."""
    n = record["data"]["held"]["n"]
    subject = f"{record['base']['name']} on {record['data']['train']['name']}"
    best = went.best
    if best is None:
        return (f"{subject}: no validation before it {went.ended or 'ended'}.",)
    rose = "; ".join(
        f"{name_measure(name)} from {format_measure(name, went.start.get(name))} "
        f"to {format_measure(name, best.measures[name])}"
        for name in numbers(went)
    )
    began = "" if record["task"].get("head", {}).get("kept") else " (it started with a new head)"
    last = went.rounds[-1].step
    steps = f"over {number_of(last, 'step')}"
    if best.step < last:
        steps = f"at step {best.step:,} of {last:,}"
    course = f"{rose}, on {n:,} held-out examples, {steps}{began}"
    if both is None:
        return (f"{subject}: {course}.",)
    finding, *limits = both.sentences
    opening = f"{subject}: {finding[0].lower()}{finding[1:]}"
    return (opening, *limits, f"In training: {course}.", *both.method)


def _build_comparison(both: HeldOutComparison) -> Section:
    """The base and the fine-tuned model on the same held-out data."""
    names = "the base model", "the fine-tuned model"
    gains = () if both.gain is None else (TrainingGains(*names, (both.gain,)),)
    return Section(
        topic=Topic.TRAINING,
        place=0,
        title=both.title,
        claim=both.claim,
        text=(*both.sentences, *both.method),
        tables=tables("Before and after training", gains),
    )


def _title(went: History) -> str:
    best, criterion = went.best, went.criterion
    if best is None:
        return "Training ended before the first validation"
    before, after = went.start.get(criterion), best.measures[criterion]
    first, last = format_measure(criterion, before), format_measure(criterion, after)
    return (
        f"Course of training: {name_measure(criterion)} on the held-out data {first} at first, "
        f"{last} at step {best.step:,}"
    )


def _better(went: History) -> bool:
    before, best = went.start.get(went.criterion), went.best
    if before is None or best is None:
        return best is not None
    after = best.measures[went.criterion]
    assert after is not None
    return after < before if went.lower else after > before


def _ending(record: Mapping[str, Any], went: History) -> str:
    best, recipe = went.best, record["recipe"]
    text = f"Training ended because {went.ended or 'it was stopped'}. "
    if best is None:
        return text + "No weights were stored."
    text += (
        f"The stored weights are those after step {best.step:,} of {went.step:,} (epoch "
        f"{best.epoch:.4g}), with the best {name_measure(went.criterion)} on the held-out data; "
        f"{recipe['optimizer']}, learning rate {_rates(went)}, batches of {recipe['batch']}, "
        f"{recipe['precision']}."
    )
    if not _better(went):
        text += (
            " Before the first step it was "
            f"{format_measure(went.criterion, went.start.get(went.criterion))}: "
            "no step improved it on these examples."
        )
    return text


def _rates(went: History) -> str:
    first, last = went.rounds[0].rate, went.rounds[-1].rate
    return f"{first:g} throughout" if first == last else f"{first:g} at first, {last:g} at the end"


def _describe_data(record: Mapping[str, Any]) -> str:
    train, validation = record["data"]["train"], record["data"]["held"]
    return (
        f"Trained on {number_of(train['n'], 'example')} of {train['name']}; validated on "
        f"{validation['n']:,} held-out examples of {validation['name']}. Frames of one video are "
        "similar, so these curves have no intervals. They only choose the checkpoint; for unbiased "
        "values evaluate the model on other data."
    )


def _table(went: History) -> Table:
    names = numbers(went)
    rows = [
        ("0", "at first", "—", "—", *(format_measure(name, went.start.get(name)) for name in names))
    ]
    rows += [
        (
            f"{ended.step:,}{' ●' if ended == went.best else ''}",
            *(f"{ended.epoch:.4g}", f"{ended.rate:g}", f"{ended.loss:.4f}"),
            *(format_measure(name, ended.measures[name]) for name in names),
        )
        for ended in went.rounds
    ]
    columns = (f"held-out {name_measure(n)}" for n in names)
    header = ("step", "epoch", "learning rate", "loss", *columns)
    return Table("All rounds; ● marks the stored weights", header, tuple(rows))


def _search(went: History, rate_search: Mapping[str, Any]) -> Section:
    tried = [read(trial) for trial in rate_search["tried"]]
    names = list(tried[0].measures or rate_search["start"])
    rows = tuple(
        (
            f"{trial.rate:g}{' ●' if trial.rate == rate_search['rate'] else ''}",
            trial.fault or f"{trial.loss:.4f}",
            *(format_measure(name, trial.measures.get(name)) for name in names),
        )
        for trial in tried
    )
    curves = [row for trial in tried for row in curve(trial.losses, f"{trial.rate:g}")]
    y = {"field": "loss", "type": "quantitative", "title": "loss", "scale": {"type": "sqrt"}}
    encoding = {"x": STEP, "y": y, **lines([f"{t.rate:g}" for t in tried], "of")}
    line = layer("line", encoding, tooltip=True)
    columns = (f"held-out {name_measure(name)}" for name in names)
    return Section(
        topic=Topic.TRAINING,
        place=2,
        title=f"Learning rate {rate_search['rate']:g} was chosen among {len(tried)}",
        text=(
            f"Each was tried for {number_of(rate_search['steps'], 'step')} from the same weights, "
            f"on the same batches, and compared by {name_measure(went.criterion)} on the held-out "
            "data; ties are broken by the loss. So the held-out data chose the learning rate too.",
        ),
        figures=(
            Figure(
                name="training_search",
                caption="Training loss of each learning rate (moving mean over steps).",
                alt=f"Losses of {len(tried)} trials by step; the table has the last values.",
                spec=chart([line], height=240, values=curves),
            ),
        ),
        tables=(Table("All learning rates", ("learning rate", "loss", *columns), rows),),
    )


def _data(record: Mapping[str, Any]) -> Section:
    """The training data and the held-out data."""
    sides = record["data"]
    rows = tuple(
        (side, examples["name"], f"{examples['n']:,}", examples["fingerprint"])
        for side, examples in (("training", sides["train"]), ("held out", sides["held"]))
    )
    header = ("", "data", "examples", "fingerprint")
    return Section(
        topic=Topic.TRAINING,
        place=3,
        title=f"Trained classes: {len(sides['classes'])}",
        text=tuple(
            f"{note[:1].upper()}{note[1:]}."
            for note in (*sides["notes"], *record["task"].get("notes", ()))
        ),
        tables=(Table("Training and held-out data", header, rows, open=True),),
    )


def figures(record: Mapping[str, Any], went: History) -> list[Figure]:
    """Figures of the loss, of held-out metrics, and of the learning rate if it falls."""
    if not went.losses:
        return []
    figures = [_loss(went)]
    names = [name for name in numbers(went) if name in SHARES]
    if went.rounds and names:
        figures.append(_draw_judgements(went, names))
    if len({judged_round.rate for judged_round in went.rounds}) > 1:
        figures.append(_rate(record["recipe"]["schedule"], went))
    return figures


def _loss(went: History) -> Figure:
    rows = curve(went.losses, "training, smoothed")
    starts = [(0, went.start)] if went.start else []
    judged = [
        *starts,
        *((judged_round.step, judged_round.measures) for judged_round in went.rounds),
    ]
    rows += [
        {"step": step, "loss": measures["loss"], "of": "held-out"}
        for step, measures in judged
        if measures.get("loss") is not None
    ]
    names = list(dict.fromkeys(row["of"] for row in rows))
    y = {"field": "loss", "type": "quantitative", "title": "loss"}
    encoding = {"x": STEP, "y": y, **lines(names, "of")}
    line = layer("line", encoding, tooltip=True)
    place = {key: to for key, to in encoding.items() if key != "strokeDash"}
    points = layer("point", place, filled=True, tooltip=True)
    dots = {"transform": [{"filter": "datum.of == 'held-out'"}], **points}
    return Figure(
        name="training_loss",
        caption="Training loss (moving mean over steps), and loss on the held-out data after "
        f"each round.{_describe_best(went)}",
        alt=f"Training loss from {went.losses[0]:.3g} to {went.losses[-1]:.3g} over "
        f"{number_of(went.step, 'step')}; the table has the rounds.",
        spec=chart([line, dots, *_best_mark(went)], values=rows),
    )


def _draw_judgements(went: History, names: Sequence[str]) -> Figure:
    rows = [
        {"step": step, "value": measures[name], "of": name_measure(name)}
        for step, measures in [(0, went.start), *((r.step, r.measures) for r in went.rounds)]
        for name in names
        if measures.get(name) is not None
    ]
    channels = lines([name_measure(name) for name in names], "of")
    encoding = {"x": STEP, "y": shares("value", "held-out data"), **channels}
    line = layer("line", encoding, point=True, tooltip=True)
    return Figure(
        name="training_judged",
        caption="Metrics on the held-out data, before the first step and after each round."
        + _describe_best(went),
        alt=f"{', '.join(map(name_measure, names))} on the held-out data by step.",
        spec=chart([line, *_best_mark(went)], values=rows),
    )


def _rate(schedule: Mapping[str, Any], went: History) -> Figure:
    first, last = went.rounds[0], went.rounds[-1]
    if schedule["kind"] == "steps":  # it falls within a round, too
        steps = Steps(tuple(schedule["at"]), schedule["factor"])
        start = first.rate / learning_rate(steps, 1.0, first.step - 1, ())
        falls = (at for at in steps.at if at < last.step)
        rows = [{"step": s, "rate": learning_rate(steps, start, s, ())} for s in (0, *falls)]
    else:
        starts = [0, *(judged_round.step for judged_round in went.rounds)]
        rows = [{"step": s, "rate": r.rate} for s, r in zip(starts, went.rounds, strict=False)]
    rows.append({"step": last.step, "rate": last.rate})
    more = {"scale": {"type": "log"}, "axis": {"format": "~g", "tickCount": 4}}
    y = {"field": "rate", "type": "quantitative", "title": "learning rate", **more}
    line = layer("line", {"x": STEP, "y": y}, interpolate="step-after", color=PALETTE[0])
    return Figure(
        name="training_rate",
        caption="Learning rate by step.",
        alt=f"The learning rate falls from {rows[0]['rate']:g} to {rows[-1]['rate']:g}.",
        spec=chart([line], height=160, values=rows),
    )


def _best_mark(went: History) -> list[dict[str, Any]]:
    if went.best is None:
        return []
    x = {"field": "step", "type": "quantitative"}
    rows = [{"step": went.best.step}]
    return [layer("rule", {"x": x}, rows, strokeDash=[4, 4], color="#888888")]


def _describe_best(went: History) -> str:
    return "" if went.best is None else f" Dashed: the stored weights, step {went.best.step:,}."


def curve(losses: Sequence[float], of: str) -> list[dict[str, Any]]:
    """The losses as rows of at most `POINTS` means over steps in a row."""
    width = max(1, -(-len(losses) // POINTS), min(len(losses) // 20, 20))
    return [
        {"step": first + len(part), "loss": sum(part) / len(part), "of": of}
        for first in range(0, len(losses), width)
        if (part := losses[first : first + width])
    ]


def numbers(went: History) -> list[str]:
    """The metrics in the report: the criterion first, without counts."""
    every = went.rounds[-1].measures if went.rounds else went.start
    rest = [name for name in every if name not in (went.criterion, "n")]
    return [went.criterion, *rest]


def name_measure(name: str) -> str:
    """A metric of `Task.judge` in words."""
    return name.upper() if name in ("ap", "ap50") else name


def format_measure(name: str, value: float | None) -> str:
    """Its value: a percentage, or four digits; `—` for None."""
    if value is None:
        return "—"
    return percent(value) if name in SHARES else f"{value:.4g}"
