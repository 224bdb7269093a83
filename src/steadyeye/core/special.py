"""Seven functions of scipy.special, without what importing that package brings along.

Its `__init__` wraps hundreds of functions for other array libraries, and with them imports
numpy.f2py, numpy.testing and unittest: 0.18 s of a processor, several times what all else of a
small report takes to import but NumPy and Arrow. The functions themselves are in one compiled
module of it, which takes 0.02 s. They are the same objects, so every number is the same.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from threading import get_ident
from types import ModuleType
from typing import Any

PACKAGE = "scipy.special"
NAMES = ("betaincinv", "expit", "gammainc", "ndtr", "ndtri", "stdtr", "stdtrit")


class _WithoutContent(MetaPathFinder, Loader):
    """Imports a compiled module of the package in place of the package, and fails to import that.

    While it does, other threads that want the package wait for its lock, as for any that is being
    imported; then they import it whole. `paths`: where its modules are.
    """

    def __init__(self, paths: Sequence[str], compiled: str) -> None:
        self.paths = list(paths)
        self.compiled = compiled
        self.thread = get_ident()

    def find_spec(self, name: str, path: object, target: object = None, /) -> ModuleSpec | None:
        """The package as a module of this loader's, for the thread that asked for it alone."""
        if name != PACKAGE or get_ident() != self.thread:
            return None
        spec = ModuleSpec(name, self, is_package=True)
        spec.submodule_search_locations = self.paths
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Imports the compiled module; raises `ImportError`, so that nothing of this one stays."""
        import_module(f"{PACKAGE}.{self.compiled}")
        raise ImportError(f"{PACKAGE} was wanted for {self.compiled} only")


def import_functions(compiled: str = "_ufuncs") -> ModuleType:
    """A module with the functions: `compiled` of scipy.special, or all of it where that lacks any.

    Who imports scipy.special later, or in another thread meanwhile, gets it whole.
    """
    spec = None if PACKAGE in sys.modules else find_spec(PACKAGE)
    if spec is not None and spec.submodule_search_locations is not None:
        finder = _WithoutContent(spec.submodule_search_locations, compiled)
        sys.meta_path.insert(0, finder)
        try:
            with suppress(ImportError):
                import_module(PACKAGE)
        finally:
            sys.meta_path.remove(finder)
    module = sys.modules.get(f"{PACKAGE}.{compiled}")
    has_all = module is not None and all(hasattr(module, name) for name in NAMES)
    return module if module is not None and has_all else import_module(PACKAGE)


_functions: Any = import_functions()
betaincinv = _functions.betaincinv
"""The x at which the regularised incomplete beta function of a and b has a value."""
expit = _functions.expit
"""1/(1 + exp(−x))."""
gammainc = _functions.gammainc
"""The regularised lower incomplete gamma function of a shape, at x."""
ndtr = _functions.ndtr
"""The standard normal distribution function."""
ndtri = _functions.ndtri
"""Its inverse."""
stdtr = _functions.stdtr
"""The distribution function of Student's t, first its degrees of freedom."""
stdtrit = _functions.stdtrit
"""Its inverse."""
