"""Models: backends (plugins), the runtimes that run them, their training heads and inner layers."""
