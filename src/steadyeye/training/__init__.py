"""Training a model further on a source: what is learned, in which order, and how it is kept."""
