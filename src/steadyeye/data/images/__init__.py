"""Image files: decoding, and reading the size from the header."""
