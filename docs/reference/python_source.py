"""What the sources of a Python package say, without running them: declarations, docstrings, comments."""

import ast
import copy
import textwrap

from markdown import Undocumented


class Module:
    """One file of the package."""

    def __init__(self, package, name):
        self.package, self.name = package, name
        folder = package.folder / name.replace(".", "/")
        self.path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
        text = self.path.read_text()
        self.lines, self.tree = text.split("\n"), ast.parse(text)

    def find(self, name):
        """The declaration of a name, and the module that it is in, however often it was imported from there."""
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
                if node.module and node.module.startswith("warpline"):
                    return self.package.module(node.module).find(name)
            elif isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name:
                return self, node
            elif isinstance(node, ast.Assign) and [ast.unparse(each) for each in node.targets] == [name]:
                return self, node
        raise LookupError(f"{self.path}: there is no {name}")

    def docstring(self, node):
        text = ast.get_docstring(node)
        if not text:
            raise Undocumented(f"{self.path}, line {node.lineno}: {node.name} has no docstring")
        return text

    def comment_above(self, node):
        """Of an assignment: the lines of comment that end just above it."""
        first = node.lineno - 1
        while self.lines[first - 1].startswith("# "):
            first -= 1
        if first == node.lineno - 1:
            raise Undocumented(f"{self.path}, line {node.lineno}: there is no comment above {ast.unparse(node)}")
        return " ".join(line[2:] for line in self.lines[first:node.lineno - 1])

    def comment_behind(self, node):
        """Of a field of a data class: the comment on its line."""
        _, hash, comment = self.lines[node.lineno - 1].partition("  # ")
        if not hash:
            raise Undocumented(f"{self.path}, line {node.lineno}: {ast.unparse(node.target)} has no comment behind it")
        return comment

    def exported(self):
        """The names in __all__."""
        return ast.literal_eval(next(node.value for node in self.tree.body if isinstance(node, ast.Assign)
                                     and ast.unparse(node.targets[0]) == "__all__"))


class Package:
    def __init__(self, folder):
        self.folder, self._modules = folder, {}

    def module(self, name):
        if name not in self._modules:
            self._modules[name] = Module(self, name)
        return self._modules[name]


def members(node):
    """Public methods of a class, overloads left out."""
    return [each for each in node.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
            and not each.name.startswith("_") and not has_decorator(each, "overload")]


def generic_members(module, node):
    """Module and declaration of the methods that a class has from bases such as Base[Type], as it has them: with its
    types, and with the keywords that Unpack stands for."""
    for base in node.bases:
        if not isinstance(base, ast.Subscript):
            continue
        found, base_node = module.find(ast.unparse(base.value))
        variables = next(each.slice for each in base_node.bases if isinstance(each, ast.Subscript))
        types = {variable.id: given for variable, given in zip(variables.elts, base.slice.elts)}
        for each in members(base_node):
            yield found, _Typed(found, types).visit(copy.deepcopy(each))


class _Typed(ast.NodeTransformer):
    def __init__(self, module, types):
        self.module, self.types = module, types

    def visit_Name(self, node):
        return self.types.get(node.id, node)

    def visit_arguments(self, node):
        self.generic_visit(node)
        if node.kwarg and annotation(node.kwarg.annotation).startswith("Unpack["):
            _, options = self.module.find(node.kwarg.annotation.slice.id)
            for each in fields(options):
                node.kwonlyargs.append(ast.arg(each.target.id, each.annotation))
                node.kw_defaults.append(ast.Constant(None))
            node.kwarg = None
        return node


def fields(node):
    """Of a data class."""
    return [each for each in node.body if isinstance(each, ast.AnnAssign) and not each.target.id.startswith("_")]


def has_decorator(node, name):
    return any(ast.unparse(each).partition("(")[0] == name for each in node.decorator_list)


def parameters(function):
    """Name and annotation of each, but self."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *([given.vararg] if given.vararg else []), *given.kwonlyargs,
             *([given.kwarg] if given.kwarg else [])]
    return {each.arg: annotation(each.annotation) for each in every if each.arg != "self"}


def annotation(node):
    """A type as users write it."""
    if node is None:
        return ""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return ast.unparse(node).replace("npt.", "").replace("np.dtype[Any]", "np.dtype").replace("'", '"')


def signature(function, owner=""):
    """As a caller sees it, without types, on lines of up to 100 characters."""
    if has_decorator(function, "property"):
        return f"{owner}{function.name}"
    bare = copy.deepcopy(function.args)
    bare.args = [each for each in bare.args if each.arg != "self"]
    for each in ast.walk(bare):
        if isinstance(each, ast.arg):
            each.annotation = None
    begin = f"{owner}{function.name}("
    lines = textwrap.wrap(begin + ast.unparse(bare).replace("'", '"') + ")", 100, subsequent_indent=" " * len(begin))
    result = annotation(function.returns)
    return "\n".join(lines) + (f" -> {result}" if result and result != "None" else "")
