"""Prediction files: written shard by shard, sealed when complete, read only if complete."""
