"""Confident mistakes of detectors: causes, one candidate per mistake, ranking by novelty."""
