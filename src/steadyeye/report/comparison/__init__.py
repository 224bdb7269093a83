"""Comparisons of models: rankings, gains from training, published numbers."""
