"""Models compared: rankings, gains from training, published numbers."""
