"""Types, spec strings, plugin lookup and errors: the vocabulary every other package speaks."""
