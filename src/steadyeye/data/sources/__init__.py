"""Sources of data to evaluate on: one plugin per file, a function that returns a `Source`."""
