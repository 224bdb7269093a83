"""Types, spec strings, plugin lookup, statistics and storage, which all other packages use."""
