"""People's judgement of a set: what they are asked, what they said, and what follows from it."""
