"""What a review decided: verdicts, counts, statistics, export and import."""
