# SPDX-License-Identifier: Apache-2.0
"""usage: json_schema.py    writes the tables of keys in docs/json-schema.md, from src/rtproof/schema/published.py

What a key means is told by its table, or else by the docstring of its model. The text around the tables is written by
hand.
"""

import inspect
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import msgspec
from api_reference import section_items
from lab_table import put

from rtproof.doctor import findings
from rtproof.report.pages import campaign_json, tuning_page
from rtproof.schema.encoder import ITSELF, Key, Shape, as_key, source_of
from rtproof.schema.published import (
    ANALYSIS,
    AUDIT,
    COINCIDENCES,
    COMPARISON,
    COUNTED_ABOVE,
    EXPLANATION,
    HISTORY,
    IMPORTED,
    MODELS,
    PLAN,
    RUNS,
)

PAGE = Path(__file__).parent.parent / "docs" / "json-schema.md"
DOCUMENTS = (
    ANALYSIS,
    PLAN,
    COMPARISON,
    RUNS,
    HISTORY,
    EXPLANATION,
    COINCIDENCES,
    campaign_json.CAMPAIGN,
    IMPORTED,
    COUNTED_ABOVE,
    AUDIT,
    findings.DOCTOR,
    tuning_page.TUNING,
)
TABLES = MODELS | campaign_json.TABLES | findings.TABLES | tuning_page.TABLES


def tables(first: Shape, *inner: Shape) -> str:
    """Return the table of a document in Markdown, and behind it those of objects in it."""
    return "\n".join([keys_table(first), *(f"### {shape.title}\n\n{keys_table(shape)}" for shape in inner)])


def marks(document: Shape) -> tuple[str, str]:
    """Return the lines between which the tables of a document stand."""
    return f"<!-- tools/json_schema.py writes from here: {document.title} -->\n", f"<!-- to here: {document.title} -->"


WORDS = {int: "integer", float: "number", str: "text", bool: "true or false", type(None): "null"}


def keys_table(shape: Shape) -> str:
    """Return the keys of a shape as a Markdown table: key, type and meaning."""
    found = _rows(shape)
    names = {source_of(model, name, key): name for model, name, key in found if key.fixed is None and not key.scoped}
    rows = [
        f"| `{name}` | {_type_words(model, name, key)} | {_meaning(model, name, key, names)} |"
        for model, name, key in found
    ]
    return "\n".join(["| key | type | meaning |", "|---|---|---|", *rows]) + "\n"


def shapes_within(shape: Shape) -> list[Shape]:
    """Return a shape and all that it holds, each once, in the order in which a reader meets them."""
    found = {shape.title: shape}
    for model, name, key in _rows(shape):
        if inner := _inner(model, name, key):
            found |= {each.title: each for each in shapes_within(inner) if each.title not in found}
    return list(found.values())


def _inner(model: Any, name: str, key: Key) -> Shape | None:
    """Return the table of the objects that stand at a key; None if they are no models."""
    if key.shape or key.each:
        return key.shape or key.each
    within = (
        typing.get_args(hint)[-1 if _is_mapping(hint) else 0] if _is_many(hint) else hint
        for hint in _choices(_hint(model, name, key))
    )
    return next((TABLES[hint] for hint in within if hint in TABLES), None)


def _is_many(hint: Any) -> bool:
    return typing.get_origin(hint) in (tuple, list, Sequence, Iterator) or _is_mapping(hint)


def _is_mapping(hint: Any) -> bool:
    return typing.get_origin(hint) in (dict, Mapping)


def _rows(shape: Shape) -> list[tuple[Any, str, Key]]:
    found: list[tuple[Any, str, Key]] = []
    for name, said in shape.keys.items():
        key = as_key(said)
        spread = _inner(shape.model, name, key) if name.startswith("*") else None
        found += _rows(spread) if spread else [(shape.model, name, key)]
    return found


def _meaning(model: Any, name: str, key: Key, names: Mapping[Any, str]) -> str:
    """The key's own text, or that of the function or of the attribute with the names of keys.

    KeyError if the docstring of the model has none.
    """
    if key.meaning:
        return key.meaning
    source = key.scoped or source_of(model, name, key)
    if not isinstance(source, str):
        return _for_the_page(_first_paragraph(source))
    *path, attribute = source.split(".")
    text = attribute_meanings(_not_null(_followed(model, path)))[attribute]
    text = text.replace("empty", "`null`").replace('""', "`null`") if key.or_null else text
    return re.sub(r"`(\w+)`", lambda found: f"`{names.get(found[1], found[1])}`", text)


def _first_paragraph(documented: Any) -> str:
    return (inspect.getdoc(documented) or "").partition("\n\n")[0]


@cache
def attribute_meanings(model: type) -> Mapping[str, str]:
    """What the docstrings of a model, its base, its properties and its methods say of each, as the page writes it.

    The class says it in a section of attributes, or in its text as ``name: words`` and ``name, name: words``.
    """
    base = model.__base__
    is_model = base and (is_dataclass(base) or hasattr(base, "__struct_fields__"))
    found = dict(attribute_meanings(base)) if is_model and base is not msgspec.Struct else {}
    found |= {
        name: _first_paragraph(each)
        for name, each in vars(model).items()
        if isinstance(each, property | cached_property | types.FunctionType) and not name.startswith("_")
    }
    text, _, section = (inspect.getdoc(model) or "").partition("\n\nAttributes:\n")
    for paragraph in text.split("\n\n"):
        found |= _named_in_text(" ".join(paragraph.split()), {*typing.get_type_hints(model), *found})
    found |= dict(section_items(section.partition("\n\n")[0]))
    return {name: _for_the_page(words) for name, words in found.items() if words}


def _named_in_text(text: str, attributes: set[str]) -> Iterator[tuple[str, str]]:
    """Attributes with their words, from a text such as "a, b: both ends. c: what is between"."""
    name = "|".join(sorted(attributes, key=len, reverse=True))
    _, *parts = re.split(rf"(?:^|(?<=\. ))((?:(?:{name}), )*(?:{name})): ", text)
    for names, words in zip(parts[::2], parts[1::2], strict=True):
        yield from ((each, words.strip()) for each in names.split(", "))


def _for_the_page(text: str) -> str:
    words = " ".join(text.split()).removesuffix(".").replace("``", "`").replace("None", "`null`")
    return words[0].lower() + words[1:] if words[1:2].islower() or words[1:2] == " " else words


def _type_words(model: Any, name: str, key: Key) -> str:
    hint, inner = _hint(model, name, key), _inner(model, name, key)
    if inner and (key.each or (not key.shape and _is_many(hint))):
        return f"{'object by name' if _is_mapping(hint) else 'list'}: {inner.title}"
    words = [inner.title] if inner else [word for each in _choices(hint) if (word := _word(each)) != "null"]
    null = key.interval or key.or_null or type(None) in _choices(hint)
    return ", ".join(dict.fromkeys([*words, *(["null"] if null else [])]))


def _choices(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def _word(hint: Any) -> str:
    if hint in WORDS:
        return WORDS[hint]
    origin = typing.get_origin(hint)
    if origin in (tuple, list, Sequence):
        return f"list of {' or '.join(map(_word, _choices(typing.get_args(hint)[0])))}"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return " or ".join(f"`{each.value}`" for each in hint)
    return "object" if _is_mapping(hint) else "null"


def _hint(model: Any, name: str, key: Key) -> Any:
    if key.fixed is not None:
        return type(key.fixed)
    if key.gives is not None:
        return key.gives
    source: Any = key.scoped or (source_of(model, name, key))
    if not isinstance(source, str):
        return typing.get_type_hints(source)["return"]
    return model if source == ITSELF else _followed(model, source.split("."))


def _followed(model: Any, path: Sequence[str]) -> Any:
    """Return the type at the end of a path as the encoder reads it."""
    nullable = False
    for part in path:
        nullable |= type(None) in _choices(model)
        model = _member(_not_null(model), part)
    return model | None if nullable else model


def _not_null(hint: Any) -> Any:
    return next(each for each in _choices(hint) if each is not type(None))


OF_METHODS: dict[str, Any] = {"#": int, "hex": str, "items": list[Any], "tolist": list[int]}
"""What ends of paths give that are no attributes of a model."""


def _member(model: Any, part: str) -> Any:
    if part in OF_METHODS:
        return OF_METHODS[part]
    if part.isdigit():
        return typing.get_args(model)[int(part)]
    if _is_mapping(model):
        return typing.get_args(model)[1]
    found = getattr(model, part, None)
    method = found if isinstance(found, types.FunctionType) else None
    getter = found.fget if isinstance(found, property) else getattr(found, "func", method)
    return typing.get_type_hints(getter)["return"] if getter else typing.get_type_hints(model)[part]


def write(page: Path = PAGE) -> None:
    """Write the tables of all documents into the page, that of an object where it comes first.

    Ends the program if the page lacks the marks.
    """
    written: set[int] = set()
    for document in DOCUMENTS:
        shapes = [shape for shape in shapes_within(document) if id(shape) not in written]
        written.update(map(id, shapes))
        put(page, tables(*shapes), *marks(document))


if __name__ == "__main__":
    write()
