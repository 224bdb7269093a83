"""The release gate: requirements, verdicts, how much data a verdict takes, CI formats."""
