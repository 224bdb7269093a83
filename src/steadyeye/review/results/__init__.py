"""Results of a review: verdicts, counts, and its effect on the numbers of a model."""
