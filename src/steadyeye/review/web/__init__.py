"""The review in a browser: pages, access, the application."""
