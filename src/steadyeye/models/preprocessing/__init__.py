"""From an image to the input of a network: resize, crop, normalise."""
