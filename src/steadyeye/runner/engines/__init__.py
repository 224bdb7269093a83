"""Where inference runs: `local` threads or processes, or `ray` actors on a cluster."""
