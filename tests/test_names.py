"""The package's own names."""

from importlib import import_module
from pkgutil import iter_modules

import airloom


def test_no_module_stands_where_a_function_does() -> None:
    # Once it is imported, a module `airloom.load` is what `airloom.load` means.
    for module in iter_modules(airloom.__path__):
        if module.name != "__main__":
            import_module(f"airloom.{module.name}")
    for name in airloom.__all__:
        if name != "__version__":
            assert callable(getattr(airloom, name)), name
