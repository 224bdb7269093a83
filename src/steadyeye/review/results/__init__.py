"""What a review decided: verdicts, counts, and its effect on the numbers of a model."""
