"""Sampling of the set to review: frames, stored images, near duplicates, splits."""
