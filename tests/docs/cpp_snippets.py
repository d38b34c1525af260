"""Writes a program that runs the C++ of docs/clients.md against a server.

    cpp_snippets.py OUT.cc

The program takes two addresses, which stand for the two of the page: of TCP and of a unix socket. A block that makes a
client begins a function, and those after it go on there. A block may return an absl::Status. What a call gives must be
OK, also where the block does not ask.
"""

import pathlib
import re
import sys

from checkout import ROOT, blocks

ADDRESSES = {'"127.0.0.1:50051"': "argv[1]", '"unix:/tmp/warpline.sock"': "argv[2]"}
PAGE = "docs/clients.md"


def program():
    texts = [text for language, text in blocks(ROOT / PAGE) if language == "cpp"]
    includes, functions = [], []
    for text in texts:
        includes += re.findall(r"^#include .*\n", text, re.M)
        text = re.sub(r"^#include .*\n", "", text, flags=re.M)
        for usual, own in ADDRESSES.items():
            text = text.replace(usual, own)
        if "Client client(" in text:
            functions.append("")
        functions[-1] += text
    for i, text in enumerate(functions):
        given = re.findall(r"auto (\w+) = (?:client\.|region->)", text)
        functions[i] += "".join(f"if (!{name}.ok()) return {name}.status();\n" for name in given)
    calls = "".join(f"  if (const absl::Status status = Function{i}(argv); !status.ok()) {{\n"
                    f'    std::fprintf(stderr, "%s\\n", status.ToString().c_str());\n    return 1;\n  }}\n'
                    for i in range(len(functions)))
    return (f"// From {PAGE}, by tests/docs/cpp_snippets.py.\n#include <algorithm>\n#include <cstdio>\n"
            '#include <absl/status/status.h>\n#include <absl/time/time.h>\n' + "".join(includes) + "\n"
            + "".join(f"absl::Status Function{i}(char** argv) {{\n{text}  return absl::OkStatus();\n}}\n\n"
                      for i, text in enumerate(functions))
            + "int main(int argc, char** argv) {\n"
            + f"  if (argc != {len(ADDRESSES) + 1}) return 2;\n{calls}  return 0;\n}}\n")


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(program())
