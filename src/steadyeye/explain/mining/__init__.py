"""Confident mistakes of detectors: causes, one candidate a mistake, ranking by novelty."""
