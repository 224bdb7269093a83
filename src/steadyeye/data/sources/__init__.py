"""Data to evaluate on: one plugin a file, each a function that returns a `Source`."""
