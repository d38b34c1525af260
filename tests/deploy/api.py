"""The messages of the API for tests in Python.

    api.py FILE    writes the descriptor set of the API, which machines without protoc need

`load` runs protoc if it is there. Otherwise it reads the descriptor set `warpline.desc` in the folder of the
programs or in the folder above. The classes are made at run time, so that every version of protobuf will do.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE_NAME = "warpline.desc"


def write_descriptor_set(path):
    subprocess.run(["protoc", f"--proto_path={ROOT}/proto", "--include_imports", f"--descriptor_set_out={path}",
                    f"{ROOT}/proto/warpline/v1/warpline.proto"], check=True)


def descriptor_set(bin_dir):
    """Returns the serialized FileDescriptorSet, or None if there is neither protoc nor a file."""
    if shutil.which("protoc"):
        with tempfile.TemporaryDirectory() as folder:
            write_descriptor_set(f"{folder}/{FILE_NAME}")
            return pathlib.Path(folder, FILE_NAME).read_bytes()
    for folder in (pathlib.Path(bin_dir), pathlib.Path(bin_dir).resolve().parent):
        if (folder / FILE_NAME).is_file():
            return (folder / FILE_NAME).read_bytes()
    return None


class Api:
    """Has the message classes of the package warpline.v1 as attributes."""

    def __init__(self, serialized):
        # Imported here: `api.py FILE` needs protoc alone.
        from google.protobuf import descriptor_pb2, descriptor_pool
        self._pool = descriptor_pool.DescriptorPool()
        for file in descriptor_pb2.FileDescriptorSet.FromString(serialized).file:
            self._pool.AddSerializedFile(file.SerializeToString())

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        from google.protobuf import message_factory
        descriptor = self._pool.FindMessageTypeByName(f"warpline.v1.{name}")
        if hasattr(message_factory, "GetMessageClass"):  # since protobuf 4.22
            message = message_factory.GetMessageClass(descriptor)
        else:
            message = message_factory.MessageFactory(self._pool).GetPrototype(descriptor)
        setattr(self, name, message)
        return message


def load(bin_dir):
    """Returns the Api. Exits with 77 if there is neither protoc nor a descriptor set."""
    serialized = descriptor_set(bin_dir)
    if serialized is None:
        print(f"skipped: no protoc, and no {FILE_NAME} in {bin_dir} or the folder above")
        sys.exit(77)
    return Api(serialized)


if __name__ == "__main__":
    write_descriptor_set(sys.argv[1])
