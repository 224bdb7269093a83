"""Shared code of detector metrics: matching boxes to ground truth, average precision."""
