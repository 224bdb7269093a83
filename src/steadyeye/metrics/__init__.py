"""Metrics, one per file, each a pure function of sealed predictions."""
