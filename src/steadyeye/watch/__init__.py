"""A stream watched live: rates with bounds that hold at any time, alerts, frames behind them."""
