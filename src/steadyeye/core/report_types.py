"""What a report is made of: sections of text, tables, figures and pictures."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from steadyeye.core import notebook
from steadyeye.core.claims import Claim


@dataclass(frozen=True)
class Table:
    """A table of a section: text cells, the first column is the row's name.

    `open`: whether it is unfolded beside a figure too.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    open: bool = False


@dataclass(frozen=True)
class Mark:
    """A box drawn on a picture: "truth" white, "right" green, "wrong" dashed; pixels of it."""

    kind: str
    box: tuple[float, ...]
    text: str


@dataclass(frozen=True)
class Heat:
    """A map laid over a picture, as wide and high as it: rows of values from 0, none, to 1."""

    rows: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Picture:
    """One sample to show, named by its id, with the lines printed below it and marks upon it.

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
    """A Vega-Lite chart; `alt` says in words what it shows.

    `thumbnails`: small pictures of samples of `data`. A page gives them to the chart as the dataset
    `thumbnails`, with a `sample` and an `image` that a tooltip shows; elsewhere it is empty.
    """

    name: str
    caption: str
    alt: str
    spec: Mapping[str, Any]
    data: str = ""
    thumbnails: tuple[Picture, ...] = ()


@dataclass(frozen=True)
class FilmFrame:
    """One frame of a film: the sample it is of and what the model says there.

    `at`: its place on the film as one reads it, such as "3 frames later" or "level 12". `score`:
    how high its bar is, 0…1: the probability of what the model says; None where there is none.
    `right`, `marks`: as of a `Picture`. `answer`: what the model says, to see where it changes.
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
    are of one size. `start`: the frame that is shown first. `fixed`: how many of the exhibit's
    first pictures stay beside it, such as the anchor. `bar`: what the scores of its frames are.
    `lanes`: a row of a timeline for each object, below the frames.
    """

    frames: tuple[FilmFrame, ...]
    start: int = 0
    fixed: int = 0
    bar: str = "probability"
    lanes: tuple[Lane, ...] = ()


@dataclass(frozen=True)
class Exhibit:
    """Pictures to be seen side by side, such as an anchor and the frame that breaks it.

    `wide`: a strip of up to four across the page, rather than a pair. `group`: the heading over it
    and those of the same group after it, none if empty. `film`: the frames around the pictures.
    `labels`, `kinds`: what a reader can filter by, the classes it is about and the kinds of break.
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
    """The question that a section answers; a report asks them in this order, under these heads."""

    TRAINING = "Effects of training"
    WHAT = "Where the model fails"
    WHEN = "Steadiness over frames and levels"
    WHY = "Possible causes"
    SURE = "How certain the numbers are"
    COMPARED = "Comparison of models"
    MORE = "Further results"


@dataclass(frozen=True)
class Section:
    """One section of a report; `text` is plain prose, one string a paragraph.

    `topic`: the question it answers. `place`: the sections of a topic stand in rising order of it.
    `method`: paragraphs on how its numbers were computed, which a page folds away. `lead`: pictures
    for the first screen of a report, those that show the clearest break; None where there are none.
    `claim`: what the title asserts and the interval that shows it; None where the title only names,
    counts or asks.
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
        """Where it stands in a report: sections are sorted by this."""
        return list(Topic).index(self.topic), self.place

    @property
    def empty(self) -> bool:
        """Whether there is nothing in it to read or to look at."""
        return not (self.text or self.tables or self.figures or self.exhibits)
