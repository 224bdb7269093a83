"""Live watching of a stream: rates with bounds that hold at any time, alerts and their frames."""
