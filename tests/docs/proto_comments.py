"""Which services, methods, messages, fields, enumerations and values of warpline.proto have no comment."""

import pathlib
import subprocess
import tempfile

from google.protobuf import descriptor_pb2

PATH = "proto/warpline/v1/warpline.proto"


def lacking(text):
    """Yields the line and the name of each, of the text of a file."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = pathlib.Path(folder, "api.proto"), pathlib.Path(folder, "api.desc")
        source.write_text(text)
        subprocess.run(["protoc", "--include_source_info", f"--descriptor_set_out={out}", "-I", folder, source], check=True)
        file = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file[0]
    places = {tuple(place.path): place for place in file.source_code_info.location}
    for path, name in _declarations(file, ()):
        if not (places[path].leading_comments or places[path].trailing_comments).strip():
            yield f"{PATH}, line {places[path].span[0] + 1}: {name}"


def _declarations(declared, path):
    """The path in SourceCodeInfo and the name of each declaration inside of another one."""
    lists = ("service", "method", "message_type", "nested_type", "field", "oneof_decl", "enum_type", "value")
    for number, field in type(declared).DESCRIPTOR.fields_by_number.items():
        if field.name not in lists:
            continue
        for i, inner in enumerate(getattr(declared, field.name)):
            if _is_synthetic(declared, field.name, i):
                continue
            name = inner.name if not path else f"{declared.name}.{inner.name}"
            yield (*path, number, i), name
            yield from _declarations(inner, (*path, number, i))


def _is_synthetic(message, kind, index):
    """protoc makes a oneof of each optional field."""
    return kind == "oneof_decl" and any(field.proto3_optional and field.oneof_index == index for field in message.field)
