"""Where inference runs: `local` threads or processes, or `ray` actors of a cluster."""
