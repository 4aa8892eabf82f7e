# SPDX-License-Identifier: Apache-2.0
"""usage: api_surface.py > data/api.txt    the public names of the Python API with their signatures, one a line."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import rtproof

sys.path.append(str(Path(__file__).parent.parent / "tools"))

import api_reference


def lines_of_class(node: ast.ClassDef) -> Iterator[str]:
    """The fields, the members of an enumeration, the methods and the properties."""
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and api_reference.is_public(name := ast.unparse(each.target)):
            default = f" = {ast.unparse(each.value)}" if each.value else ""
            yield f"{name}: {ast.unparse(each.annotation)}{default}"
        elif isinstance(each, ast.Assign):
            yield ast.unparse(each)
    for method in api_reference.methods(node):
        decorators = "".join(f"@{ast.unparse(one)} " for one in method.decorator_list)
        yield decorators + api_reference.signature(method)


def surface() -> Iterator[str]:
    """Every line."""
    for name in sorted(rtproof.__all__):
        if name == "__version__":
            yield name
            continue
        node = api_reference.definition(name)
        if isinstance(node, ast.FunctionDef):
            yield api_reference.signature(node)
        else:
            yield f"class {name}({', '.join(map(ast.unparse, node.bases))})"
            yield from (f"    {line}" for line in lines_of_class(node))


if __name__ == "__main__":
    print("\n".join(surface()))
