# SPDX-License-Identifier: Apache-2.0
"""Plug-ins: a module in a folder is a plug-in, its file name is its name (with - for _), its docstring is its help.

The contract of each kind is the docstring of its folder's ``__init__.py``; ``tests/test_contracts.py`` holds every file
to it. Nothing is imported until it is asked for by name, so a plug-in with a missing dependency harms nobody else.
"""

import importlib
import pkgutil
from types import ModuleType

from rtproof.errors import UserError


def names(package: ModuleType) -> list[str]:
    """The plug-ins in a package: its modules whose name does not start with an underscore, sorted."""
    found = (module.name for module in pkgutil.iter_modules(package.__path__))
    return sorted(name.replace("_", "-") for name in found if not name.startswith("_"))


def load(package: ModuleType, name: str) -> ModuleType:
    """Import one plug-in; UserError with the list of what there is if the name is wrong."""
    if name not in names(package):
        kind = package.__name__.rpartition(".")[2]
        raise UserError(f"there is no {name!r} in {kind}; there are: {', '.join(names(package))}")
    return importlib.import_module(f"{package.__name__}.{name.replace('-', '_')}")


def load_all(package: ModuleType) -> list[ModuleType]:
    """Every plug-in of a package, by its ORDER where it has one, then by name."""
    modules = [load(package, name) for name in names(package)]
    return sorted(modules, key=lambda module: (getattr(module, "ORDER", 0), module.__name__))
