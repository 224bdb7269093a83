"""`python -m steadyeye`."""

import sys
from pathlib import Path

# `-m` puts the current folder first: a file there could replace a package of the same name
folder = Path.cwd()
if not sys.flags.safe_path and sys.path[0] == str(folder) and folder not in Path(__file__).parents:
    del sys.path[0]

from steadyeye.cli import main  # noqa: E402 - after the path is right

main()
