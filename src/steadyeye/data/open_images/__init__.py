"""Open Images' CSV files: streamed into columns, millions of rows without an object for each."""
