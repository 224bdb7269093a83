"""From an image to the input of a network: resizing, cropping, normalising."""
