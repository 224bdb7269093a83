"""Seven functions of scipy.special, without the import of that package.

Its `__init__` wraps hundreds of functions for other array libraries, and imports numpy.f2py,
numpy.testing and unittest with them: 0.18 s, several times the other imports of a small report
besides NumPy and Arrow. The functions are in one of its compiled modules, which takes 0.02 s. They
are the same objects, so every number is the same.
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
    """Imports a compiled module instead of its package, and then fails to import the package.

    Meanwhile, other threads that import the package wait for its lock, as for any module; then they
    import it as usual. `paths`: the folders of its modules.
    """

    def __init__(self, paths: Sequence[str], compiled: str) -> None:
        self.paths = list(paths)
        self.compiled = compiled
        self.thread = get_ident()

    def find_spec(self, name: str, path: object, target: object = None, /) -> ModuleSpec | None:
        """The package as a module of this loader, only for the thread that requested it."""
        if name != PACKAGE or get_ident() != self.thread:
            return None
        spec = ModuleSpec(name, self, is_package=True)
        spec.submodule_search_locations = self.paths
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Imports the compiled module; raises `ImportError`, so that it is not registered."""
        import_module(f"{PACKAGE}.{self.compiled}")
        raise ImportError(f"{PACKAGE} was wanted for {self.compiled} only")


def import_functions(compiled: str = "_ufuncs") -> ModuleType:
    """A module with the functions: `compiled` of scipy.special, or the package if one is missing.

    Later imports of scipy.special, and those of other threads, get the whole package.
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
"""The x at which the regularised incomplete beta function of a and b has a given value."""
expit = _functions.expit
"""1/(1 + exp(−x))."""
gammainc = _functions.gammainc
"""The regularised lower incomplete gamma function of a shape, at x."""
ndtr = _functions.ndtr
"""The standard normal distribution function."""
ndtri = _functions.ndtri
"""Its inverse."""
stdtr = _functions.stdtr
"""The distribution function of Student's t; its first argument is the degrees of freedom."""
stdtrit = _functions.stdtrit
"""Its inverse."""
