"""Open Images' CSV files, streamed into columns."""
