"""The modules of the package, without running them."""

import ast
import graphlib
import pathlib

import warpline

PACKAGE = pathlib.Path(warpline.__file__).parent


def imports_of(path, modules):
    """The modules of the package that this one imports when it runs: all but those that only types need."""
    def walk(node):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.Import):
                yield from (alias.name for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                inside = [f"{child.module}.{alias.name}" for alias in child.names]
                yield from (name if name in modules else child.module for name in inside)
            yield from walk(child)
    return {name for name in walk(ast.parse(path.read_text())) if name in modules}


def test_no_circle_of_imports():
    modules = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    assert len(modules) > 30
    graph = {name: imports_of(path, modules) - {name} for name, path in modules.items()}
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle
