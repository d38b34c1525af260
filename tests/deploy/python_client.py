"""The Python client without an installation: a folder for sys.path."""

import os
import pathlib
import shutil
import subprocess
import sys

from dashboard import ROOT

PROTO = "warpline/v1/warpline.proto"


def compiler():
    """The command that generates messages: $PROTOC, protoc, or that of grpcio-tools. None if there is none."""
    found = os.environ.get("PROTOC") or shutil.which("protoc")
    if found:
        return [found]
    tools = [sys.executable, "-m", "grpc_tools.protoc"]
    return tools if subprocess.run([*tools, "--version"], capture_output=True).returncode == 0 else None


def folder_of(directory, given=None):
    """The folder in which the package `warpline` lies, with its messages: `given`, or a copy of the sources below
    `directory`. Exits with 77 where the messages cannot be generated."""
    if given is not None:
        if not pathlib.Path(given, "warpline/v1/warpline_pb2.py").is_file():
            sys.exit(f"{given} has no warpline/v1/warpline_pb2.py")
        return os.path.abspath(given)
    protoc = compiler()
    if protoc is None:
        print("skipped: no protoc here; --python takes a folder that was made elsewhere (python_client.py)")
        sys.exit(77)
    target = os.path.join(os.path.abspath(directory), "python")
    shutil.copytree(ROOT / "client/python/src", target, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    subprocess.run([*protoc, f"--proto_path={ROOT}/proto", f"--python_out={target}", PROTO], check=True)
    pathlib.Path(target, "warpline/v1/__init__.py").touch()
    return target


# Run as a program it makes such a folder, for a machine that cannot: python_client.py DIRECTORY.
if __name__ == "__main__":
    print(folder_of(sys.argv[1]))
