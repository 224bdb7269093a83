"""How many parts of a watch have repeated frames, and the note on them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from steadyeye.core.format import number_of, percent
from steadyeye.data.video.repeated_frames import ADVICE, NOTED, find_repeats, share_of_repeats
from steadyeye.watch.measures import FrameChange

PART = 99
"""Changes of a part at least, of 100 frames: a few frames that hardly differ are no conversion."""


@dataclass
class RepeatCount:
    """Parts of a watch with repeated frames, of those with motion.

    A part is one block, or several short ones with `PART` changes together. `most`: the highest
    share of repeats of a part, 0…1. `begun`: how often repeats began, after parts without. `is_on`:
    whether the newest part has them. `waiting`: changes of the part that is not complete.
    """

    parts: int = 0
    repeated: int = 0
    most: float = 0.0
    begun: int = 0
    is_on: bool = False
    waiting: list[FrameChange] = field(default_factory=list)

    def add(self, changes: Sequence[FrameChange]) -> None:
        """Adds a block; `changes`: of `ShrunkFrames`."""
        self.waiting += changes
        if len(self.waiting) < PART:
            return
        share = share_of_repeats(find_repeats(*zip(*self.waiting, strict=True)))
        self.waiting = []
        if share is not None:
            self.count_part(share)

    def count_part(self, share: float) -> None:
        """Counts a part by its share of repeats."""
        # a share about the limit does not begin again and again
        is_on = share >= (NOTED / 2 if self.is_on else NOTED)
        self.begun += is_on and not self.is_on
        self.parts, self.repeated, self.is_on = self.parts + 1, self.repeated + is_on, is_on
        self.most = max(self.most, share)

    def describe(self) -> str:
        """The note; empty without repeats."""
        if not self.repeated:
            return ""
        return (
            f"repeated frames in {self.repeated:,} of {number_of(self.parts, 'part')} with motion: "
            f"up to {percent(self.most)} of the frames of a part {ADVICE}; if the rate was "
            "doubled, --fps with half of it leaves them out"
        )
