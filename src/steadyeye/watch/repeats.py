"""How many blocks of a watch have repeated frames, and the note on them."""

from dataclasses import dataclass

from steadyeye.core.format import number_of, percent
from steadyeye.data.video.repeated_frames import ADVICE, NOTED


@dataclass
class RepeatCount:
    """Blocks with repeated frames, of those with motion.

    `most`: the highest share of repeats of a block, 0…1. `begun`: how often repeats began, after
    blocks without. `is_on`: whether the newest block has them.
    """

    blocks: int = 0
    repeated: int = 0
    most: float = 0.0
    begun: int = 0
    is_on: bool = False

    def add(self, share: float | None) -> None:
        """Adds a block; `share`: of `share_of_repeats`, None where too little moves to tell."""
        if share is None:
            return
        # a share about the limit does not begin again and again
        is_on = share >= (NOTED / 2 if self.is_on else NOTED)
        self.begun += is_on and not self.is_on
        self.blocks, self.repeated, self.is_on = self.blocks + 1, self.repeated + is_on, is_on
        self.most = max(self.most, share)

    def describe(self) -> str:
        """The note; empty without repeats."""
        if not self.repeated:
            return ""
        return (
            f"repeated frames in {self.repeated:,} of {number_of(self.blocks, 'block')} with "
            f"motion: up to {percent(self.most)} of a block's frames {ADVICE}; if the rate was "
            "doubled, --fps with half of it leaves them out"
        )
