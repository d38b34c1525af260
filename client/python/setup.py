"""Builds the package: libwarpline.so.0 and the module warpline._core over it, and the version, which is the
checkout's. Everything else is in pyproject.toml.

The library is that of $WARPLINE_BUILD, else of the checkout's build/release if that is of the same version, else it is
built in build/python-core, where it takes a few minutes the first time. Nothing generated stays in the source tree
beside build/, except by an editable install (pip install -e), which runs from there.
"""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.command.egg_info import egg_info
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

import build_core  # noqa: E402

HEADER = ROOT / "client/include/warpline/warpline.h"
LIBRARY = "libwarpline.so.0"
# The packages for building the library.
APT = ("sudo apt-get install g++ cmake ninja-build libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev "
       "libabsl-dev libssl-dev")
# Compilers of gRPC code take up to so much.
COMPILER_BYTES = 1_500_000_000
# Removed when the interpreter ends.
SCRATCH = tempfile.TemporaryDirectory(prefix="warpline-")
CORE_SOURCE = Path(SCRATCH.name, "_core.c")


def version() -> str:
    """Returns the version of the project, from the checkout's CMakeLists.txt."""
    lists = ROOT / "CMakeLists.txt"
    found = re.search(r"^project\(warpline VERSION (\S+)", lists.read_text(), re.M) if lists.is_file() else None
    if not found or not HEADER.is_file():
        sys.exit(f"{HERE} is not in a checkout of warpline, of which the package is built")
    return found[1]


def fault(library: Path) -> str:
    """Returns why the package cannot bundle a library: another version, or functions that it lacks; else ""."""
    if not library.is_file():
        return "there is none"
    if not (library.parent.parent / "licenses").is_dir():
        return "there are no licences beside it"
    try:
        loaded = ctypes.CDLL(str(library))
        loaded.warpline_version.restype = ctypes.c_char_p
        found = loaded.warpline_version().decode()
    except (OSError, AttributeError) as error:
        return str(error)
    if found != version():
        return f"its version is {found} and not {version()}"
    missing = [name for name in build_core.functions(HEADER.read_text()) if not hasattr(loaded, name)]
    return f"it lacks {', '.join(missing)}" if missing else ""


def jobs() -> int:
    """Returns the number of compilers for which there are CPUs and memory."""
    memory = re.search(r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(), re.M)
    room = int(memory[1]) * 1024 // COMPILER_BYTES if memory else 1
    return max(1, min(room, len(os.sched_getaffinity(0))))


def build_library() -> Path:
    """Builds the library alone, without CUDA and what only the server needs."""
    folder = ROOT / "build/python-core"
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    commands = [["cmake", "-S", ROOT, "-B", folder, *generator, "-DCMAKE_BUILD_TYPE=Release", "-DWARPLINE_CLIENT_ONLY=ON"],
                ["cmake", "--build", folder, "--target", "warpline_abi", "-j", str(jobs())]]
    for command in commands:
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        except FileNotFoundError:
            sys.exit(f"warpline needs CMake to build its library: {APT}")
        if done.returncode:
            sys.exit(f"{done.stdout[-4000:]}\nwarpline's library cannot be built (above). It needs: {APT}")
    return folder / "lib" / LIBRARY


def library() -> Path:
    """The library to bundle; it is built if there is none."""
    given = os.environ.get("WARPLINE_BUILD")
    folder = Path(given) if given else ROOT / "build/release"
    found = folder.resolve() / "lib" / LIBRARY
    reason = fault(found)
    if not reason:
        return found
    if given:
        sys.exit(f"{found} of $WARPLINE_BUILD cannot be used: {reason}")
    print(f"warpline: {found} is not taken, as {reason}; building it", flush=True)
    return build_library()


class BuildExt(build_ext):
    """The module, and beside it the library, which it finds there."""

    def run(self):
        bundled = library()
        build_core.builder(HEADER).emit_c_code(str(CORE_SOURCE))
        for extension in self.extensions:
            extension.sources, extension.extra_objects = [str(CORE_SOURCE)], [str(bundled)]
        super().run()
        # setuptools would take it for a file of the package, which must not lie elsewhere.
        for extension in self.extensions:
            extension.sources = []
        shutil.copyfile(bundled, self.target())
        # Of what the library contains of others; the build of CMake has collected them.
        shutil.copytree(bundled.parent.parent / "licenses", self.target().parent / "licenses", dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("server"))

    def target(self):
        return Path(HERE / "src" if self.inplace else self.build_lib, "warpline", LIBRARY)

    def get_outputs(self):
        return super().get_outputs() + [str(self.target())]


CORE = Extension("warpline._core", [], include_dirs=[str(ROOT / "client/include")],
                 define_macros=[("Py_LIMITED_API", build_core.LIMITED_API)], py_limited_api=True,
                 # From 3.11 on Python.h leaves out what cffi's code relies on.
                 extra_compile_args=["-include", "stdlib.h", "-include", "string.h"],
                 extra_link_args=["-Wl,-rpath,$ORIGIN"])


class Build(build):
    """Builds outside the source tree, where an old build's files would be installed again."""

    def initialize_options(self):
        super().initialize_options()
        self.build_base = os.path.join(SCRATCH.name, "build")


class EggInfo(egg_info):
    """Metadata outside the source tree too."""

    def initialize_options(self):
        super().initialize_options()
        self.egg_base = SCRATCH.name


class Sdist(sdist):
    def run(self):
        sys.exit("there is no sdist of warpline: the package bundles a C++ library that is built from the checkout. "
                 "Build a wheel: client/python/make_wheel, or ./quickstart wheels")


setup(version=version(), ext_modules=[CORE],
      # One wheel for Python 3.11 and all later ones.
      options={"bdist_wheel": {"py_limited_api": "cp311"}},
      cmdclass={"build": Build, "build_ext": BuildExt, "egg_info": EggInfo, "sdist": Sdist})
