"""docs/api.md: the gRPC API, from the comments of warpline.proto."""

import re
import subprocess
import tempfile

from google.protobuf import descriptor_pb2

from markdown import Undocumented, anchor, capital, check_anchors, link, prose, sentence, table, with_links

FILE = "warpline/v1/warpline.proto"
# Numbers of fields in descriptor.proto, of which SourceCodeInfo makes the path of a declaration.
PACKAGE, MESSAGE, ENUM, SERVICE = (2,), 4, 5, 6
FIELD_OF_MESSAGE, ONEOF_OF_MESSAGE, VALUE_OF_ENUM, METHOD_OF_SERVICE = 2, 8, 2, 2
# A comment such as "// == Programs ==" begins a part of the page.
PART = re.compile(r"== (.+) ==")


def page(proto_root):
    """The page. Undocumented if anything has no comment."""
    return Page(_read(proto_root)).text()


def _read(proto_root):
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["protoc", "--include_source_info", f"--descriptor_set_out={out.name}", "-I", proto_root, FILE],
                       check=True)
        return descriptor_pb2.FileDescriptorSet.FromString(out.read()).file[0]


class Page:
    def __init__(self, file):
        self.file = file
        self.places = {tuple(place.path): place for place in file.source_code_info.location}

    def text(self):
        names = [each.name for each in (*self.file.service, *self.file.message_type, *self.file.enum_type)]
        methods = [f"{service.name}.{method.name}" for service in self.file.service for method in service.method]
        parts = [(title, self.types(begin, end)) for title, begin, end in self.parts()]
        page = "\n\n".join([
            "# gRPC API",
            f"<!-- Made by docs/reference from proto/{FILE}. Do not edit it. -->",
            f"The package `{self.file.package}`, as its file [`{FILE.rpartition('/')[2]}`](../proto/{FILE}) describes "
            "it. How to call it from various languages, how errors are reported and how large messages may be is on "
            "the page about [clients](clients.md); the [Python package](python.md) has a page of its own.",
            table(["service", "methods"],
                  [[link(service.name), ", ".join(f"[{method.name}](#{anchor(service.name + method.name)})"
                                                  for method in service.method)]
                   for service in self.file.service]),
            table(["types", ""],
                  [[link(title), ", ".join(link(name) for name, _ in types)] for title, types in parts]),
            "## Conventions", prose(self.comment(PACKAGE, "package")),
            *[self.service(i, service) for i, service in enumerate(self.file.service)],
            *[text for title, types in parts for text in (f"## {title}", *[text for _, text in types])],
        ]) + "\n"
        check_anchors(page)
        # A method is a link only where it is named with its service: Put and Get alone are words like others.
        return with_links(page, [*names, *methods])

    def comment(self, path, name):
        place = self.places[path]
        text = place.leading_comments or place.trailing_comments
        if not text.strip():
            raise Undocumented(f"{FILE}, line {place.span[0] + 1}: {name} has no comment")
        return re.sub(r"^ ", "", text, flags=re.M).rstrip()

    def service(self, index, service):
        path = (SERVICE, index)
        texts = [f"## {service.name}", prose(self.comment(path, service.name))]
        for i, method in enumerate(service.method):
            name = f"{service.name}.{method.name}"
            call = (f"{_stream(method.client_streaming)}{_link(method.input_type)} → "
                    f"{_stream(method.server_streaming)}{_link(method.output_type)}")
            texts += [f"### {name}", call, prose(self.comment((*path, METHOD_OF_SERVICE, i), name))]
        return "\n\n".join(texts)

    def parts(self):
        """Title, first line and last line of each part of the types."""
        begun = []
        for place in self.places.values():
            for comment in place.leading_detached_comments:
                title = PART.fullmatch(comment.strip())
                if title:
                    begun.append((place.span[0], title[1]))
        begun.sort()
        ends = [line for line, _ in begun[1:]] + [float("inf")]
        return [(title, begin, end) for (begin, title), end in zip(begun, ends)]

    def types(self, begin, end):
        """Name and text of the messages and enumerations between two lines, in the order of the file."""
        found = [(self.places[(kind, i)].span[0], each.name, make, (kind, i), each)
                 for kind, all_of_kind, make in ((MESSAGE, self.file.message_type, self.message),
                                                 (ENUM, self.file.enum_type, self.enum))
                 for i, each in enumerate(all_of_kind)]
        return [(name, make(path, each)) for line, name, make, path, each in sorted(found, key=lambda x: x[0])
                if begin <= line < end]

    def message(self, path, message):
        texts = [f"### {message.name}", prose(self.comment(path, message.name))]
        oneofs = {}
        rows = []
        for i, field in enumerate(message.field):
            name = f"{message.name}.{field.name}"
            kind = _kind(field)
            if field.HasField("oneof_index") and not field.proto3_optional:
                oneof = message.oneof_decl[field.oneof_index].name
                oneofs.setdefault(field.oneof_index, []).append(f"`{field.name}`")
                kind += f", one of `{oneof}`"
            rows.append([f"`{field.name}`", kind, sentence(self.comment((*path, FIELD_OF_MESSAGE, i), name))])
        if rows:
            texts.append(table(["field", "type", "meaning"], rows))
        for i, fields in oneofs.items():
            oneof = message.oneof_decl[i].name
            meaning = sentence(self.comment((*path, ONEOF_OF_MESSAGE, i), f"{message.name}.{oneof}"))
            texts.append(f"`{oneof}` is one of {', '.join(fields[:-1])} and {fields[-1]}: "
                         f"{meaning[0].lower()}{meaning[1:]}")
        return "\n\n".join(texts)

    def enum(self, path, enum):
        rows = [[f"`{value.name}`", str(value.number),
                 capital(sentence(self.comment((*path, VALUE_OF_ENUM, i), value.name)))]
                for i, value in enumerate(enum.value)]
        return "\n\n".join([f"### {enum.name}", prose(self.comment(path, enum.name)),
                            table(["name", "number", "meaning"], rows)])


def _link(type_name):
    """Names of types have a dot and the package before them."""
    return link(type_name.rpartition(".")[2])


def _stream(streaming):
    return "stream of " if streaming else ""


def _kind(field):
    """The type of a field, as a user thinks of it."""
    if field.type_name:
        kind = _link(field.type_name)
    else:
        kind = f"`{descriptor_pb2.FieldDescriptorProto.Type.Name(field.type)[len('TYPE_'):].lower()}`"
    if field.label == descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED:
        return f"list of {kind}"
    return f"optional {kind}" if field.proto3_optional else kind
