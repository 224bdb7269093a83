"""Files and objects by path or URL: reading, listing, atomic writing, one writer at a time."""
