# The module that build_core.py makes of warpline.h. cffi has no types for its functions.
from typing import Any

ffi: Any
lib: Any
