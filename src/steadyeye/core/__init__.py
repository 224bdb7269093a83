"""Types, spec strings, plugin lookup, statistics and storage: what every other package speaks."""
