"""Builds warpline._core: the functions of libwarpline.so.0 for Python, as cffi makes them of warpline/warpline.h.

The header is the only list of functions, structures and codes. What is added there is in the module.
"""

import re
from pathlib import Path

from cffi import FFI

# The oldest Python whose stable ABI the module uses: 3.11.
LIMITED_API = "0x030b0000"

# Functions of the module that the library lacks.
OUTCOME = Path(__file__).resolve().parent / "outcome.h"

# Python code that the library calls: a function that looks for signals and for what an event loop has to do, and one
# that hears how far a call is.
CALLBACKS = """extern "Python" int32_t warpline_python_poll(void*);
extern "Python" void warpline_python_progress(void*, size_t, size_t);"""


def declarations(header: str) -> str:
    """The text of a header in the C that cffi reads: without comments, the parts for C++, and the preprocessor."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header, flags=re.S)
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#(?:else|endif)\b", "", text, flags=re.S | re.M)
    text = re.sub(r"^\s*#(?:.*\\\n)*.*$", "", text, flags=re.M)
    text = re.sub(r"\bWARPLINE_EXPORT\b", "", text)
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def functions(header: str) -> list[str]:
    """The names of the functions that a header declares."""
    return sorted(set(re.findall(r"\b(warpline_\w+)\s*\(", declarations(header))))


def builder(header: Path) -> FFI:
    """The builder of the module, which emits its C source."""
    ffi = FFI()
    own = OUTCOME.read_text()
    # cffi reads declarations, so the bodies of functions go.
    declared = re.sub(r"^static (.*?) \{\n.*?^\}", r"\1;", declarations(own), flags=re.S | re.M)
    ffi.cdef(f"{declarations(header.read_text())}\n{declared}\n{CALLBACKS}")
    ffi.set_source("warpline._core", f"#include <warpline/warpline.h>\n{own}")
    return ffi
