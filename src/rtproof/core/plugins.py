# SPDX-License-Identifier: Apache-2.0
"""Find and load plug-ins: modules in a folder whose docstring is the contract of their kind (tests/test_contracts.py).

A plug-in is imported when somebody asks for it by name, so that a missing dependency does not affect the others.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from rtproof.core.errors import UserError
from rtproof.core.phrases import names_instead, unknown_name


def plugin_names(package: ModuleType) -> list[str]:
    """Sorted names of the plug-ins in a package. A module whose name starts with an underscore is no plug-in."""
    found = (module.name for module in pkgutil.iter_modules(package.__path__))
    return sorted(name.replace("_", "-") for name in found if not name.startswith("_"))


def load_plugin(package: ModuleType, name: str) -> ModuleType:
    """Import one plug-in by name. If there is none, UserError lists those that exist, and says the package's HINT."""
    if name not in plugin_names(package):
        kind = package.__name__.rpartition(".")[2].removesuffix("s")
        hint = getattr(package, "HINT", "").format(name=name)
        raise UserError(f"{unknown_name(kind, name, plugin_names(package))}{hint and f'; {hint}'}")
    return _imported(package, name)


def _imported(package: ModuleType, name: str) -> ModuleType:
    return importlib.import_module(f"{package.__name__}.{name.replace('-', '_')}")


def load_plugins(package: ModuleType) -> list[ModuleType]:
    """All plug-ins of a package, sorted by their ``ORDER`` (0 if a plug-in has none) and then by name."""
    modules = [_imported(package, name) for name in plugin_names(package)]
    return sorted(modules, key=lambda module: (getattr(module, "ORDER", 0), module.__name__))


def checked_options(owner: str, known: Mapping[str, str], given: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The given options by name. UserError if an option is unknown (it lists the known ones) or is given twice."""
    options = options_once(owner, given)
    for key in options:
        if key not in known:
            meant = names_instead(key, known).partition("; ")[0]
            raise UserError(f"{owner} has no option {key!r}{meant}; {_option_list(known)}")
    return options


def option_words(option: str, value: Any) -> list[str]:
    """The words of an option and its value on a command line; [] for None and False."""
    if value is None or value is False:
        return []
    if value is True:
        return [option]
    return [word for each in (value if isinstance(value, tuple) else (value,)) for word in (option, str(each))]


def options_once(owner: str, given: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The pairs as a dictionary. UserError if a key is given twice."""
    options: dict[str, str] = {}
    for key, value in given:
        if key in options:
            raise UserError(f"the option {key!r} of {owner} is given twice")
        options[key] = value
    return options


def _option_list(known: Mapping[str, str]) -> str:
    return f"there are: {', '.join(f'{key} ({text})' for key, text in known.items())}" if known else "it has none"
