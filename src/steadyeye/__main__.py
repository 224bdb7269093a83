"""`python -m steadyeye`."""

from steadyeye.cli import main

main()
