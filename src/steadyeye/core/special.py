"""Six functions of scipy.special, without what importing that package brings along.

Its `__init__` wraps hundreds of functions for other array libraries, and with them imports
numpy.f2py, numpy.testing and unittest: 0.18 s of a processor, several times what all else of a
small report takes to import but NumPy and Arrow. The functions themselves are in one compiled
module of it, which takes 0.02 s. They are the same objects, so every number is the same.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

PACKAGE = "scipy.special"
NAMES = ("betaincinv", "expit", "ndtr", "ndtri", "stdtr", "stdtrit")


def import_functions(compiled: str = "_ufuncs") -> ModuleType:
    """A module with the functions: `compiled` of scipy.special, or all of it where that lacks any.

    The compiled one is imported below a package without content, which is then taken away again:
    who imports scipy.special later gets it whole.
    """
    spec = None if PACKAGE in sys.modules else find_spec(PACKAGE)
    if spec is None or spec.submodule_search_locations is None:
        return import_module(PACKAGE)
    bare = ModuleType(PACKAGE)
    bare.__path__ = list(spec.submodule_search_locations)
    sys.modules[PACKAGE] = bare
    try:
        found = import_module(f"{PACKAGE}.{compiled}")
    except ImportError:
        found = bare
    finally:
        del sys.modules[PACKAGE]
    return found if all(hasattr(found, name) for name in NAMES) else import_module(PACKAGE)


_functions: Any = import_functions()
betaincinv = _functions.betaincinv
"""The x at which the regularised incomplete beta function of a and b has a value."""
expit = _functions.expit
"""1/(1 + exp(−x))."""
ndtr = _functions.ndtr
"""The standard normal distribution function."""
ndtri = _functions.ndtri
"""Its inverse."""
stdtr = _functions.stdtr
"""The distribution function of Student's t, first its degrees of freedom."""
stdtrit = _functions.stdtrit
"""Its inverse."""
