"""Files and objects by path or URL: read, listed, written whole, held by one writer."""
