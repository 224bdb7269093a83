"""What is written as JSON."""

PARSERS = []
