# SPDX-License-Identifier: Apache-2.0
"""Write models as plain data for JSON, by tables of published keys.

A ``Shape`` is the table of one object in JSON. Its keys end with their unit. ``UNIT`` at the end of a key stands for
the unit of the values. The value of a key is the attribute of the same name, with or without the unit, unless the key
says where else it comes from. Its meaning is what the model's docstring says of the attribute, unless the key has one.
A model within another is written by the table of its class (``Scope.tables``), unless the key names another table.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import cache
from types import BuiltinMethodType, MethodType
from typing import Any

Json = dict[str, Any]
UNIT = "_UNIT"
UNITS = ("_per_s", "_count", "_ratio", "_bytes", "_ns", "_s", UNIT)
"""How a key ends that has a unit. An attribute of a model may lack this end."""
ITSELF = "."
"""As the source of a key: the model itself."""
Source = str | Callable[[Any], object]
"""A function, or a path of attributes, numbers of items and keys of counts, maybe with a method or a # at its end.

"fit.xi", "0.k", "lost.queue", "kinds.items". # is the number of elements.
"""


@dataclass(frozen=True)
class Scope:
    """What an object has from the objects around it.

    unit: the unit of the values. shares: the quantiles to give. limits_ns: the user's limits.
    deterministic: whether the run was in virtual time, where no interval holds. tables: those of the models within.
    """

    unit: str = "ns"
    shares: tuple[float, ...] = ()
    limits_ns: tuple[int, ...] = ()
    deterministic: bool = False
    tables: "Mapping[type, Shape]" = field(default_factory=dict)


@dataclass(frozen=True)
class Key:
    """A published key.

    meaning: one line of Markdown for the page; "": what the model's docstring says of the attribute.
    source: where its value comes from; behind a None a path gives None.
    scoped: a function of the model and of its scope, in place of a source.
    fixed: a value that is always the same, in place of a source.
    shape: the table of the object that stands here. each: that of each element of the list or mapping that stands here.
    gives: the type of what a lambda in place of a source gives.
    interval: an interval, or what it rests on: null in virtual time. or_null: an empty text is null.
    """

    meaning: str = ""
    source: Source = ""
    scoped: Callable[[Any, Scope], object] | None = None
    fixed: object = None
    shape: "Shape | None" = None
    each: "Shape | None" = None
    gives: Any = None
    interval: bool = False
    or_null: bool = False


@dataclass(frozen=True)
class Shape:
    """The published keys of a model, in their order; a bare text is the meaning of a key that needs nothing else.

    title: its name on the page. model: a class, or the type of a tuple. unit: where the unit of its values comes from;
    without it the unit is that of the object around. A key that begins with a star puts the keys of its shape here.
    """

    title: str
    model: Any
    unit: Source = ""
    keys: Mapping[str, str | Key] = field(default_factory=dict)

    def __or__(self, keys: Mapping[str, str | Key]) -> "Shape":
        """Return the shape with these keys behind its own."""
        return replace(self, keys={**self.keys, **keys})


Special = str | Key | Callable[[Any], object]


def table(model: Any, names: str = "", title: str = "", unit: Source = "", /, **special: Special) -> Shape:
    """Return the table of a model whose docstrings say what its keys mean.

    names: the keys in their order, with spaces between them; without any, those of the attributes. ``key=source``
    names where its value comes from, ``key?`` makes an empty text null. title: on the page, if it is not the name of
    the class in words. special: a meaning, the function that is the source, or what else is to be said of a key, by its
    name without the star.
    ValueError if one of these is not among the names.
    """
    found: dict[str, str | Key] = {}
    for word in names.split() or [each.name for each in fields(model)]:
        name, _, source = word.partition("=")
        name, empty = name.removesuffix("?"), name.endswith("?")
        given = special.pop(name.removeprefix("*"), "")
        key = Key(source=given) if callable(given) else as_key(given)
        found[name] = replace(key, source=key.source or source, or_null=key.or_null or empty)
    if special:
        raise ValueError(f"not among the names: {', '.join(sorted(special))}")
    words = title or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", model.__name__).lower()
    return Shape(words, model, unit, found)


def row(model: Any, title: str, /, **meanings: str) -> Shape:
    """Return the table of a tuple: a key for each item, with its meaning."""
    return Shape(title, model, "", {name: Key(text, str(at)) for at, (name, text) in enumerate(meanings.items())})


def by_model(*shapes: Shape) -> dict[type, Shape]:
    """Return the tables by their models."""
    return {shape.model: shape for shape in shapes}


def document(schema: str, version: int) -> dict[str, Key]:
    """Return the two keys with which every document begins."""
    return {
        "schema": Key("the name of this form", fixed=schema),
        "version": Key("raised when the meaning of a key changes or a key goes away", fixed=version),
    }


def encode(model: object, shape: Shape, scope: Scope | None = None) -> Json:
    """Return a model as plain data: text, numbers, None, lists and dictionaries. What is not finite is None."""
    scope = scope or Scope()
    if shape.unit:
        scope = replace(scope, unit=str(_value_of(model, shape.unit)))
    found: Json = {}
    for name, said in shape.keys.items():
        key = as_key(said)
        value = _value(model, name, key, scope)
        if name.startswith("*"):
            found |= value
        else:
            found[name.removesuffix(UNIT) + f"_{scope.unit}" if name.endswith(UNIT) else name] = value
    return found


def as_key(said: str | Key) -> Key:
    """Return the key that a bare text stands for."""
    return said if isinstance(said, Key) else Key(said)


def _value(model: object, name: str, key: Key, scope: Scope) -> Any:
    if key.interval and scope.deterministic:
        return None
    if key.fixed is not None:
        return plain(key.fixed)
    value: Any = key.scoped(model, scope) if key.scoped else _value_of(model, source_of(type(model), name, key))
    if value is None or (key.or_null and not value):
        return None
    if key.shape:
        return encode(value, key.shape, scope)
    if key.each and isinstance(value, Mapping):
        return {name: encode(each, key.each, scope) for name, each in value.items()}
    return [encode(each, key.each, scope) for each in value] if key.each else plain(value, scope)


NO_SCOPE = Scope()


def plain(value: object, scope: Scope = NO_SCOPE) -> Any:
    """Return a value as plain data. Models have a table in the scope; TypeError for any other."""
    if type(value) in scope.tables:
        return encode(value, scope.tables[type(value)], scope)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: plain(each, scope) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, scope) for each in value]
    if value is None or isinstance(value, str | int):
        return value
    raise TypeError(f"{type(value).__name__} has no form in JSON without a table of keys")


def source_of(model: Any, name: str, key: Key) -> Source:
    """Return where the value of a key comes from. model: a class. Raises AttributeError if the model lacks it."""
    return key.source or _attribute(model, name)


@cache
def _attribute(model: type, name: str) -> str:
    name = name.removeprefix("*")
    names = [name, *(name.removesuffix(unit) for unit in UNITS if name.endswith(unit))]
    for each in names:
        if each in getattr(model, "__dataclass_fields__", ()) or hasattr(model, each):
            return each
    raise AttributeError(f"{model.__name__} has no {' or '.join(names)}")


def _value_of(model: Any, source: Source) -> Any:
    if not isinstance(source, str):
        return source(model)
    if source != ITSELF:
        for part in source.split("."):
            if model is None:
                return None
            if part == "#":
                model = len(model)
            elif part.isdigit():
                model = model[int(part)]
            else:
                model = getattr(model, part) if hasattr(model, part) else model.get(part, 0)
    return model() if isinstance(model, MethodType | BuiltinMethodType) else model


def json_bytes(plain: Json) -> bytes:
    """The JSON as UTF-8, indented by two."""
    return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False).encode(errors="replace") + b"\n"
