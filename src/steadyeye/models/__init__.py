"""Models: backends (plugins), the runtimes that run them, heads for training, inner layers."""
