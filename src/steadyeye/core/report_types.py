"""The parts of a report: sections of text, tables, figures and pictures."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from steadyeye.core import notebook
from steadyeye.core.claims import Claim


@dataclass(frozen=True)
class Table:
    """A table of a section: text cells; the first column is the row's name.

    `open`: whether it is unfolded even beside a figure.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    open: bool = False


@dataclass(frozen=True)
class Mark:
    """A box drawn on a picture, in its pixels: "truth" white, "right" green, "wrong" dashed."""

    kind: str
    box: tuple[float, ...]
    text: str


@dataclass(frozen=True)
class Heat:
    """A map laid over a whole picture: rows of values from 0, none, to 1."""

    rows: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Picture:
    """One sample to show, by its id, with the lines printed below it and the marks on it.

    `small`: a thumbnail, of 64 pixels at most.
    """

    sample: str
    title: str
    lines: tuple[str, ...]
    right: bool | None = None
    marks: tuple[Mark, ...] = ()
    heat: Heat | None = None
    small: bool = False


@dataclass(frozen=True)
class Figure:
    """A Vega-Lite chart; `alt` describes it in words.

    `thumbnails`: small pictures of samples of `data`. A page passes them to the chart as the
    dataset `thumbnails`, with a `sample` and an `image` for the tooltip; elsewhere it is empty.
    """

    name: str
    caption: str
    alt: str
    spec: Mapping[str, Any]
    data: str = ""
    thumbnails: tuple[Picture, ...] = ()


@dataclass(frozen=True)
class FilmFrame:
    """One frame of a film: its sample and the model's prediction there.

    `at`: its place in the film in words, such as "3 frames later" or "level 12". `score`: the
    height of its bar, 0…1, the probability of the prediction; None without one. `right`, `marks`:
    as of a `Picture`. `answer`: the prediction, to see where it changes.
    """

    sample: str
    at: str
    line: str
    score: float | None = None
    right: bool | None = None
    marks: tuple[Mark, ...] = ()
    answer: str = ""


@dataclass(frozen=True)
class Lane:
    """An object along the frames of a film, with one of `states` for each frame.

    `present`: detected; `weak`: below the threshold; `renamed`: of another class than in most
    frames; `lost`: not detected; `unsure`: not known; `absent`: not there yet or any more.
    """

    name: str
    states: tuple[str, ...]


@dataclass(frozen=True)
class Film:
    """Frames in order, to be played and stepped through around the pictures of an exhibit.

    Such as all frames of a set, all levels of an operator, or one second of a video; all images
    have the same size. `start`: the frame that is shown first. `fixed`: number of the exhibit's
    first pictures that stay beside it, such as the anchor. `bar`: the meaning of its frames'
    scores. `lanes`: a row of a timeline for each object, below the frames. `verdicts`: what `right`
    of a frame says if it is true, and if not; without labels nothing is right.
    """

    frames: tuple[FilmFrame, ...]
    start: int = 0
    fixed: int = 0
    bar: str = "probability"
    lanes: tuple[Lane, ...] = ()
    verdicts: tuple[str, str] = ("right", "wrong")


@dataclass(frozen=True)
class Exhibit:
    """Pictures to compare side by side, such as an anchor and the frame that breaks it.

    `wide`: a strip of up to four across the page, rather than a pair. `group`: the heading over it
    and the following ones of the same group; empty: none. `film`: the frames around the pictures.
    `labels`, `kinds`: the filters of a reader, its classes and the kinds of break.
    """

    title: str
    model: str
    data: str
    pictures: tuple[Picture, ...]
    wide: bool = False
    group: str = ""
    film: Film | None = None
    labels: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


class Topic(Enum):
    """The question that a section answers; a report has the topics in this order, as headings."""

    TRAINING = "Effects of training"
    WHAT = "Where the model fails"
    WHEN = "Steadiness over frames and levels"
    WHY = "Possible causes"
    SURE = "How certain the numbers are"
    COMPARED = "Comparison of models"
    MORE = "Further results"


@dataclass(frozen=True)
class Section:
    """One section of a report; `text` is plain prose, one string per paragraph.

    `topic`: the question it answers. `place`: sections of a topic are sorted by it, rising.
    `method`: paragraphs on how its numbers were computed, which a page folds away. `lead`: pictures
    of the clearest break, for the first screen of a report; None without any. `claim`: the
    statement of the title with its interval; None if the title only names, counts or asks.
    """

    title: str
    topic: Topic = Topic.MORE
    place: int = 100
    text: tuple[str, ...] = ()
    method: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    exhibits: tuple[Exhibit, ...] = ()
    lead: Exhibit | None = None
    claim: Claim | None = None

    def __repr__(self) -> str:
        return notebook.short("Section", self.title)

    def _repr_html_(self) -> str:
        return notebook.prose(self.title, self.text)

    @property
    def order(self) -> tuple[int, int]:
        """The key by which sections are sorted in a report."""
        return list(Topic).index(self.topic), self.place

    @property
    def empty(self) -> bool:
        """Whether it has no text, table, figure or picture."""
        return not (self.text or self.tables or self.figures or self.exhibits)
