"""Parts of Vega-Lite charts: one specification serves the page, SVG and PNG."""
