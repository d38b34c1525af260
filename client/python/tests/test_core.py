"""The module over the C library, as it is installed."""

import os
import subprocess
import sys

import warpline
from warpline._core import ffi, lib

sys.path.append(os.path.join(os.path.dirname(__file__), ".."))

import build_core  # noqa: E402

ROOT = os.path.join(os.path.dirname(__file__), "../../..")


def test_the_library_is_of_the_same_version():
    assert ffi.string(lib.warpline_version()).decode() == warpline.__version__


def test_it_has_all_that_the_header_declares():
    with open(f"{ROOT}/client/include/warpline/warpline.h") as file:
        names = build_core.functions(file.read())
    assert len(names) > 40 and [name for name in names if not hasattr(lib, name)] == []
    assert (lib.WARPLINE_OK, lib.WARPLINE_UNAUTHENTICATED, lib.kDLCUDAHost) == (0, 16, 3)


def test_the_library_is_the_one_in_the_package():
    """A process of its own, with nowhere else to find one."""
    text = "import warpline._core\nprint(*{line.split()[-1] for line in open('/proc/self/maps') if 'libwarpline' in line})"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == os.path.join(os.path.dirname(warpline.__file__), "libwarpline.so.0")


def test_declarations_are_what_is_left_of_a_header():
    header = """#ifndef X_H_
/* A comment. */
#ifdef __cplusplus
extern "C" {
#endif
#define WARPLINE_EXPORT __attribute__(( \\
  visibility("default")))
enum {
  WARPLINE_A = 1 /* one */
};
#ifdef __cplusplus
typedef enum : int {
#else
typedef enum {
#endif
  kB = 2
} B;
WARPLINE_EXPORT int warpline_f(B b); // int warpline_g(B b);
#endif
"""
    assert build_core.declarations(header) == ("enum {\n  WARPLINE_A = 1\n};\ntypedef enum {\n  kB = 2\n} B;\n"
                                               " int warpline_f(B b);")
    assert build_core.functions(header) == ["warpline_f"]
