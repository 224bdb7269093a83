"""A stream watched live: rates with bounds that hold at any time, alerts, the frames behind them."""
