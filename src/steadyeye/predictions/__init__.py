"""Prediction files: written a shard at a time, sealed when complete, read only if whole."""
