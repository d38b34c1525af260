"""docs/python.md: the Python package, from its signatures and docstrings."""

import ast
import re

from markdown import Undocumented, anchor, capital, check_anchors, link, prose, sentence, table, with_links
from python_source import Package, annotation, fields, generic_members, has_decorator, members, parameters, signature

PARTS = [
    ("Connecting", ["connect", "local"]),
    ("The client", ["Client"]),
    ("Expressions and programs", ["program", "placeholder", "Expression", "Program"]),
    ("Functions", ["where", "concatenate", "stack", "scan", "topk", "sort_with_indices", "put_along_axis", "set_slice",
                   "zeros", "ones", "full", "arange", "linspace", "eye"]),
    ("Resident tensors", ["Tensor", "TensorInfo"]),
    ("What a server and a request tell", ["ServerInfo", "Device", "Operation", "Variant", "Limits", "Execution",
                                          "StageTimes"]),
    ("Errors", ["Error", "StatusCode", "FieldViolation", "InvalidArgument", "ResourceExhausted", "DeadlineExceeded", "Unavailable",
                "Unimplemented", "Cancelled", "NotFound", "FailedPrecondition", "Unauthenticated", "Internal",
                "WarplinePerformanceWarning"]),
    ("Element types that NumPy lacks", ["bfloat16", "float8_e4m3fn", "float8_e5m2"]),
]
# Names of types in signatures, and where they are declared.
TYPES = {"Array": "arrays", "Input": "calls", "Axes": "calls", "ReduceOp": "names", "Activation": "names",
         "Precision": "names", "Mode": "targets", "Report": "calls", "Progress": "calls"}
# Classes whose names are words of ordinary sentences too, and are no links there.
WORDS = ("Device", "Operation", "Limits", "Variant")
# "axes: The new order ...", a line of a docstring, with those below it that are indented.
ARGUMENT = re.compile(r"^(\w+): (.*(?:\n[ ]+.*)*)", re.M)


def page(folder):
    """The page. Undocumented if anything public has no docstring."""
    return Page(Package(folder)).text()


class Page:
    def __init__(self, package):
        self.package = package
        self.root, self.aio = package.module("warpline"), package.module("warpline.aio")
        # Bases of which the members have been listed, by the class that they were listed with.
        self.listed = {}

    def text(self):
        named = [name for _, names in PARTS for name in names]
        missing = {*self.root.exported(), "aio"} ^ {*named, "aio"}
        if missing:
            raise Undocumented(f"{__file__}: PARTS and warpline.__all__ differ in {sorted(missing)}")
        parts = [(title, self.part(names)) for title, names in PARTS]
        headings = [name for _, text in parts for name in re.findall(r"^####? ([\w.]+)$", text, re.M)]
        page = "\n\n".join([
            "# Python package",
            "<!-- Made by docs/reference from the sources in client/python. Do not edit it. -->",
            "All that `import warpline` gives. How to install the package and how its parts go together is in its "
            "[README](../client/python/README.md); the [gRPC API](../proto/warpline/v1/warpline.proto) that it calls is described by its file.",
            table(["part", ""], [
                *[[link(title), ", ".join(_name_link(name, text) for name in names)]
                  for (title, text), (_, names) in zip(parts, PARTS)],
                [link("asyncio"), ", ".join(f"`aio.{name}`" for name in sorted(self.aio.exported(), key=str.swapcase))],
                [link("Types in signatures"), ", ".join(f"`{name}`" for name in TYPES)]]),
            *[piece for title, text in parts for piece in (f"## {title}", text)],
            "## asyncio", self.asynchronous(),
            "## Types in signatures", self.types(),
        ]) + "\n"
        check_anchors(page)
        # Docstrings name other pages by their paths in the repository.
        page = re.sub(r"(?<![\w/(\[])docs/((\w+)\.md(?:#[\w-]+)?)", r"[\2](\1)", page)
        return with_links(page, [name for name in headings if name not in WORDS])

    def part(self, names):
        """Its functions and classes; what is smaller, in one table at the end."""
        found = [(name, *self.root.find(name)) for name in names]
        texts, rows = [], []
        for name, module, node in found:
            if isinstance(node, ast.Assign):
                rows.append([f"`{name}`", module.comment_above(node)])
            elif isinstance(node, ast.FunctionDef):
                texts.append(f"### warpline.{name}\n\n" + self.function(module, node, "warpline."))
            elif node.bases and not members(node) and not fields(node) and ast.unparse(node.bases[0]) == "Error":
                also = ", ".join(f"`{ast.unparse(base)}`" for base in node.bases[1:])
                rows.append([f"`{name}`", also, sentence(module.docstring(node))])
            else:
                texts.append(self.class_(name, module, node))
        if rows:
            texts.append(table(["class", "is also a", "when"] if len(rows[0]) == 3 else ["dtype", ""], rows))
        return "\n\n".join(texts)

    def signature(self, node, module, owner):
        """With the values of constants instead of their names."""
        def value(found):
            return ast.unparse(module.find(found[1])[1].value)
        return re.sub(r"(?<==)([A-Z][A-Z_]+)\b", value, signature(node, owner))

    def function(self, module, node, owner):
        # The language is py and not python, of which tests/docs/pages_test.py runs what there is.
        described, arguments = _split(module.docstring(node), parameters(node))
        return "\n\n".join(filter(None, [f"```py\n{self.signature(node, module, owner)}\n```", prose(described.replace("\0", "")),
                                         _list(arguments, parameters(node))]))

    def class_(self, name, module, node):
        generic = list(generic_members(module, node))
        methods = [*generic, *((module, each) for each in members(node))]
        known = {}
        for _, method in methods:
            known = parameters(method) | known
        known |= {each: "" for each in re.findall(r"self\.([a-z]\w*)\b", ast.unparse(node)) if each not in known}
        begin, arguments = _split(module.docstring(node), known)
        before, _, after = begin.partition("\0")
        after = after.replace("\0", "")  # of arguments in several places
        texts = [f"### {name}", prose(before), _list(arguments, known), prose(after)]
        if fields(node):
            rows = [[f"`{each.target.id}`", f"`{annotation(each.annotation)}`", capital(module.comment_behind(each))]
                    for each in fields(node)]
            texts.append(table(["field", "type", "meaning"], rows))
        properties = [each for each in members(node) if has_decorator(each, "property")]
        # Those that need no words about their arguments are rows of a table.
        brief = [(its_module, each) for its_module, each in generic if "\n" not in its_module.docstring(each)]
        if properties:
            texts.append(self.table_of(module, properties))
        texts += [f"#### {name}.{each.name}\n\n" + self.function(its_module, each, f"{name.lower()}.")
                  for its_module, each in methods if each not in properties and (its_module, each) not in brief]
        if brief:
            texts.append(self.table_of(brief[0][0], [each for _, each in brief]))
        texts += self.bases(name, module, node, {each.name for each in members(node)})
        return "\n\n".join(filter(None, texts))

    def bases(self, name, module, node, hidden):
        """What a class has from bases that are not public themselves."""
        texts = []
        for base in node.bases:
            if isinstance(base, ast.Subscript):
                continue
            try:
                base_module, base_node = module.find(ast.unparse(base))
            except LookupError:
                continue  # of the standard library
            if base_node.name in self.listed:
                if self.listed[base_node.name] != name:
                    self.listed[base_node.name] = name
                    texts.append(f"It also has the methods and operators of {link('Expression')}.")
                continue
            shown = [each for each in members(base_node) if each.name not in hidden]
            if base_node.name in self.root.exported():
                continue
            if shown:
                self.listed[base_node.name] = name
                texts += [prose(base_module.docstring(base_node)), self.table_of(base_module, shown)]
            texts += self.bases(name, base_module, base_node, hidden | {each.name for each in shown})
        return texts

    def table_of(self, module, nodes):
        return table(["member", "meaning"],
                     [[f"`{' '.join(signature(each).split()).partition(' -> ')[0]}`", sentence(module.docstring(each))]
                      for each in nodes])

    def asynchronous(self):
        """The classes of warpline.aio have the methods of those in warpline, as coroutines."""
        texts = []
        for name in sorted(self.aio.exported(), key=str.swapcase):
            module, node = self.aio.find(name)
            texts += [f"### aio.{name}", prose(module.docstring(node))]
            if isinstance(node, ast.ClassDef):
                awaited, others = self.compared(name, module, node)
                texts.append(f"Methods are those of {link(name)}, as coroutines: {', '.join(awaited)}."
                             + (f" Not a coroutine: {', '.join(others)}." if others else ""))
        return "\n\n".join(texts)

    def compared(self, name, module, node):
        """Names of the coroutines and of the other methods. They take what the methods of the blocking class take."""
        generic = {each.name for _, each in generic_members(module, node)}
        blocking = {each.name: each for _, each in self.all_members(*self.root.find(name))}
        awaited, others = [], []
        for its_module, each in self.all_members(module, node):
            its_module.docstring(each)
            if ast.dump(each.args) != ast.dump(blocking[each.name].args):
                raise Undocumented(f"{its_module.path}, line {each.lineno}: {name}.{each.name} takes other arguments")
            if isinstance(each, ast.AsyncFunctionDef) or each.name in generic:
                awaited.append(f"`{each.name}`")
            elif each in node.body:
                others.append(f"`{each.name}`")
        return awaited, others

    def all_members(self, module, node):
        """With those of bases, in which both kinds of class may have the same ones."""
        found = [*generic_members(module, node), *((module, each) for each in members(node))]
        for base in node.bases:
            if isinstance(base, ast.Subscript):
                continue
            try:
                found += [each for each in self.all_members(*module.find(ast.unparse(base)))
                          if each[1].name not in {own.name for _, own in found}]
            except LookupError:
                pass
        return found

    def types(self):
        rows = []
        for name, where in TYPES.items():
            module, node = self.package.module(f"warpline.{where}").find(name)
            rows.append([f"`{name}`", f"`{annotation(node.value)}`", module.comment_above(node)])
        return table(["name", "is", "meaning"], rows)


def _split(docstring, known):
    """A docstring without the lines that describe `known` names, in whose place it has a \\0, and these lines."""
    arguments = {name: text for name, text in ARGUMENT.findall(docstring) if name in known}
    rest = ARGUMENT.sub(lambda found: "\0" if found[1] in known else found[0], docstring)
    return re.sub(r"\0[\0\s]*", "\0", rest).rstrip("\0") if arguments else rest, arguments


def _list(arguments, types):
    return "\n".join(f"- `{name}`{f' (`{types[name]}`)' if types.get(name) else ''}: {sentence(text)}"
                     for name, text in arguments.items())



def _name_link(name, text):
    """Functions have headings, classes have headings, and what is small is a row of a table."""
    for heading in (name, f"warpline.{name}"):
        if f"### {heading}\n" in text:
            return f"[{name}](#{anchor(heading)})"
    return f"`{name}`"
