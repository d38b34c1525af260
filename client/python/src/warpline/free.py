"""The program of expressions that contain only resident tensors, placeholders and arrays that the server makes. They can be
used in any program."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpline.programs import Program

program: "Program"  # programs.py, which imports all that makes such expressions, puts it here
