"""The pages say what is so: their commands run as they stand, and their links lead somewhere.

    pages_test.py BIN_DIR [TEST...]

BIN_DIR: of the daemon and the command line. The blocks of a page are run in their order in a scratch folder that looks
like the checkout (checkout.py). Those of text after another are what it prints. A comment before a block, `<!-- not run
by tests: why -->`, leaves it out; no other one of sh or Python is.
"""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from checkout import METRICS, ROOT, SERVER, blocks, checkout, matches

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
# What there is before the first block of a page.
CHECKOUT, PACKAGE, SERVER_TOO = range(3)
PAGES = {"README.md": CHECKOUT, "docs/getting-started.md": PACKAGE, "docs/identity.md": CHECKOUT,
         "docs/configuration.md": CHECKOUT, "docs/restarts.md": PACKAGE, "docs/tls.md": PACKAGE,
         "docs/arrays.md": SERVER_TOO, "docs/xp.md": SERVER_TOO, "docs/bytes.md": SERVER_TOO, "docs/clients.md": SERVER_TOO,
         "docs/vector-search.md": SERVER_TOO}
# Blocks of Python here are run by the package's own tests, which look at the results too.
PYTHON_PAGE = "client/python/README.md"
# Paths that begin with a folder of the checkout.
PATH = re.compile(r"(?<![\w./-])(?:\.ci|\.github|client|cmake|deploy|docs|kernels|proto|server|tests)/[\w./*-]*")
# Those that a reader makes.
MADE = {"deploy/tls", "deploy/edge"}
# Programs of which pages show calls.
COMMAND = re.compile(r"^(\$ |sudo |(\S+/)?warplined? |\./quickstart|cmake |ctest |docker |apt |npm |curl |haproxy |"
                     r"openssl |nsys |ncu |systemctl |install |/usr/bin/python3 )", re.M)


def pages():
    """All, but those below build/, where there are others'."""
    return [page for kind in ("*.md", "docs/**/*.md", "kernels/**/*.md", "client/**/*.md", "tests/**/*.md") for page in ROOT.glob(kind)
            if "node_modules" not in page.parts]


INSTALL = next(text for language, text in blocks(ROOT / "README.md") if "pip install" in text)


class PageTest(unittest.TestCase):
    @classmethod
    @functools.cache
    def virtual_environment(cls):
        """With the Python package. Made once, as that takes seconds; pages that make their own do it again."""
        made = cls.enterClassContext(checkout(BIN))
        made.run("sh", INSTALL)
        return made.folder / ".venv"

    def run_page(self, name, languages=("sh", "python")):
        ran = printed = 0
        with checkout(BIN) as made:
            begun = PAGES.get(name, CHECKOUT)
            if begun >= PACKAGE:
                (made.folder / ".venv").symlink_to(self.virtual_environment())
            if begun >= SERVER_TOO:
                made.run("sh", "warplined\n")
            output = ""
            for language, text in blocks(ROOT / name):
                if language in languages:
                    output = made.run(language, text)
                    ran += 1
                elif language == "text":
                    self.assertTrue(matches(output, text), f"{name}: this was printed\n{output}instead of\n{text}")
                    printed += 1
        return ran, printed


class CommandsTest(PageTest):
    def test_of_the_readme(self):
        self.assertEqual(self.run_page("README.md"), (4, 1))

    def test_of_getting_started(self):
        self.assertEqual(self.run_page("docs/getting-started.md"), (9, 5))

    def test_of_vector_search(self):
        self.assertEqual(self.run_page("docs/vector-search.md"), (5, 1))

    def test_of_clients(self):
        self.assertEqual(self.run_page("docs/clients.md"), (1, 1))

    def test_of_tls(self):
        self.assertEqual(self.run_page("docs/tls.md"), (9, 0))

    def test_of_the_python_package(self):
        self.assertEqual(self.run_page(PYTHON_PAGE, languages=("sh",)), (1, 0))

    def test_of_other_pages(self):
        for name, number in (("docs/bytes.md", 2), ("docs/configuration.md", 1), ("docs/identity.md", 5)):
            with self.subTest(name):
                self.assertEqual(self.run_page(name), (number, 0))

    def test_are_run_on_all_pages_or_it_says_why_not(self):
        for page in pages():
            name = str(page.relative_to(ROOT))
            if name not in (*PAGES, PYTHON_PAGE):
                left = [text for language, text in blocks(page) if language in ("sh", "python")]
                self.assertEqual(left, [], name)

    def test_have_a_language(self):
        for page in pages():
            # Measurements of a day are left as they were.
            if "benchmarks" not in page.parts:
                left = [text for language, text in blocks(page) if not language and COMMAND.search(text)]
                self.assertEqual(left, [], f"{page}: commands are blocks of sh, or of console with what they print")

    def test_have_the_addresses_that_the_daemon_takes_by_itself(self):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("WARPLINED_")}
        told = subprocess.run([BIN / "warplined", "--help"], env=environment, text=True, capture_output=True, check=True)
        text = " ".join(told.stdout.split())
        self.assertRegex(text, rf"--listen=.*?Default {SERVER}\. .*? --metrics-listen=.*?Default {METRICS}\.")


class RestartsTest(PageTest):
    """By itself, as the health checks in it have time limits."""

    @unittest.skipUnless(shutil.which("haproxy"), "there is no haproxy")
    def test_commands(self):
        self.assertEqual(self.run_page("docs/restarts.md"), (3, 1))


class VersionTest(unittest.TestCase):
    def test_of_the_readme_is_that_of_the_build(self):
        version = re.search(r"^project\(warpline VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
        self.assertIn(f"Version {version}. ", (ROOT / "README.md").read_text())


class LinksTest(unittest.TestCase):
    def test_lead_to_files_and_headings(self):
        broken, seen = [], 0
        for page in pages():
            for target in re.findall(r"\]\(([^)\s]+)\)", without_blocks(page)):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, heading = target.partition("#")
                other = (page.parent / path).resolve() if path else page
                seen += 1
                if not other.exists() or heading and not (other.is_file() and heading in headings(other)):
                    broken.append(f"{page.relative_to(ROOT)}: {target}")
        self.assertEqual(broken, [])
        self.assertGreater(seen, 50)

    def test_paths_in_backticks_are_there(self):
        """A page may leave out the ending, as of server/rpc/acceptor. NAME stands for any name."""
        missing, seen = [], 0
        for page in pages():
            # Measurements of a day name the files of that day.
            if "benchmarks" in page.parts:
                continue
            for words in re.findall(r"`([^`]+)`", without_blocks(page)):
                for path in PATH.findall(words):
                    seen += 1
                    names = path.replace("NAME", "*")
                    if path not in MADE and not [*ROOT.glob(names), *ROOT.glob(names + ".*")]:
                        missing.append(f"{page.relative_to(ROOT)}: {path}")
        self.assertEqual(missing, [])
        self.assertGreater(seen, 100)


def without_blocks(page):
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)


def headings(page):
    """As GitHub makes links of them."""
    titles = re.findall(r"^#+ (.+)$", without_blocks(page), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


if __name__ == "__main__":
    unittest.main()
