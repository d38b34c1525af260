"""The Python client without an installation: a folder for sys.path, with the messages of the API as warpline_pb2."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from dashboard import ROOT


def missing():
    """What the distribution lacks for building the package, or ""."""
    if not (os.environ.get("PROTOC") or shutil.which("protoc")):
        return "protoc"
    needs = "import cffi, setuptools, venv, wheel"
    return "" if subprocess.run(["/usr/bin/python3", "-c", needs], capture_output=True).returncode == 0 else needs


def folder_of(directory, given=None):
    """The folder in which the package `warpline` lies: `given`, or what its wheel holds, below `directory`. Exits with 77
    where the wheel cannot be built."""
    if given is not None:
        if not pathlib.Path(given, "warpline/_core.abi3.so").is_file():
            sys.exit(f"{given} has no warpline/_core.abi3.so")
        return os.path.abspath(given)
    lacking = missing()
    if lacking:
        print(f"skipped: no {lacking} here; --python takes a folder that was made elsewhere (python_client.py)")
        sys.exit(77)
    target = os.path.join(os.path.abspath(directory), "python")
    wheel = subprocess.run([ROOT / "client/python/make_wheel", target], stdout=subprocess.PIPE, text=True, check=True).stdout
    shutil.unpack_archive(wheel.strip(), target, "zip")
    proto = "warpline/v1/warpline.proto"
    with tempfile.TemporaryDirectory() as scratch:
        protoc = os.environ.get("PROTOC", "protoc")
        subprocess.run([protoc, f"--proto_path={ROOT}/proto", f"--python_out={scratch}", proto], check=True)
        # Under another name: the package is called warpline.
        shutil.copy(f"{scratch}/warpline/v1/warpline_pb2.py", target)
    return target


# Run as a program it makes such a folder, for a machine that cannot: python_client.py DIRECTORY.
if __name__ == "__main__":
    print(folder_of(sys.argv[1]))
