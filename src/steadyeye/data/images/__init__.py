"""Image files: decoded, and their sizes read without decoding them."""
