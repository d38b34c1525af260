"""Writes docs/python.md and docs/array-api.md, or with --check compares them and ends with 1 if they are out of date.

    /usr/bin/python3 -B docs/reference [--check]

Debian 12 has no program that makes Markdown of docstrings (Sphinx, pydoctor and Doxygen make HTML), and GitHub shows
Markdown: so this one is our own. The Python package need not be installed, as its sources are read and not run.
"""

import pathlib
import sys

import array_page
import python_page

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pages():
    """What each page is to contain."""
    return {ROOT / "docs/python.md": python_page.page(ROOT / "client/python/src"),
            ROOT / "docs/array-api.md": array_page.page(ROOT)}


def main():
    stale = [path for path, text in pages().items() if not path.is_file() or path.read_text() != text]
    if sys.argv[1:] == ["--check"]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date: run /usr/bin/python3 -B docs/reference", file=sys.stderr)
        sys.exit(bool(stale))
    for path in stale:
        path.write_text(pages()[path])


if __name__ == "__main__":
    main()
