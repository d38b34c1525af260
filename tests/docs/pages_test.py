"""The pages say what is so: their commands run as they stand, and their links lead somewhere.

    pages_test.py BIN_DIR

BIN_DIR: of the daemon and the command line. The blocks of a page are run in their order in a scratch folder that looks
like the checkout. Those of text after another are what it prints. A comment before a block, `<!-- not run by tests: why
-->`, leaves it out.
"""

import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.argv.pop(1)).resolve()
DAEMON = "build/release/bin/warplined"
SERVER, METRICS = "127.0.0.1:50051", "127.0.0.1:9400"  # as the pages have them


def blocks(page):
    """Language and text of each that is not left out."""
    found = re.finditer(r"(<!-- not run by tests: .+? -->\n)?^```(\w*)\n(.*?)^```$", page.read_text(), re.M | re.S)
    return [(language, text) for left_out, language, text in (each.groups() for each in found) if not left_out]


def free_address():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{one.getsockname()[1]}"


class Checkout:
    """A folder like the checkout after ./quickstart, and a server's addresses of its own."""

    def __init__(self, folder):
        self.folder, self.addresses, self.servers = pathlib.Path(folder), {SERVER: free_address(), METRICS: free_address()}, []
        (self.folder / "build/release").mkdir(parents=True)
        (self.folder / "build/release/bin").symlink_to(BIN)
        for name in ("proto", "client/python"):
            shutil.copytree(ROOT / name, self.folder / name, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        for name in ("deploy", "CMakeLists.txt", "LICENSE"):
            (self.folder / name).symlink_to(ROOT / name)
        self.environment = os.environ | {
            "WARPLINED_LISTEN": self.addresses[SERVER], "WARPLINED_METRICS_LISTEN": self.addresses[METRICS],
            "WARPLINE_SERVER": self.addresses[SERVER], "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def run(self, language, text):
        """What the block prints. A server, which has a line to itself, goes on until stop()."""
        for usual, own in self.addresses.items():
            text = text.replace(usual, own)
        if re.fullmatch(DAEMON + ".*\n", text):
            return self.serve(text)
        program = {"sh": ["bash", "-euc"], "python": [".venv/bin/python", "-c"]}[language]
        done = subprocess.run([*program, text], cwd=self.folder, env=self.environment, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=300)
        assert done.returncode == 0, f"{text}\nended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def serve(self, text):
        server = subprocess.Popen(["bash", "-c", "exec " + text], cwd=self.folder, env=self.environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        first = server.stdout.readline()
        if first.startswith("READY "):
            self.servers.append(server)
            return first
        rest, _ = server.communicate(timeout=60)
        assert server.returncode == 0, f"{text}\nended with {server.returncode}:\n{first}{rest}"
        return first + rest

    def stop(self):
        for server in self.servers:
            server.terminate()
            assert server.wait(60) == 0
            server.stdout.close()


@contextlib.contextmanager
def checkout():
    with tempfile.TemporaryDirectory() as folder:
        made = Checkout(folder)
        try:
            yield made
        finally:
            made.stop()


INSTALL = next(text for language, text in blocks(ROOT / "README.md") if "pip install" in text)


class CommandsTest(unittest.TestCase):
    def run_page(self, name, begun=True):
        """begun: with a server and the Python package, as after the first page."""
        ran = printed = 0
        with checkout() as made:
            if begun:
                made.run("sh", INSTALL)
                made.run("sh", DAEMON + "\n")
            output = ""
            for language, text in blocks(ROOT / name):
                if language in ("sh", "python"):
                    output = made.run(language, text)
                    ran += 1
                elif language == "text":
                    self.assertEqual(output, text)
                    printed += 1
        return ran, printed

    def test_of_the_readme(self):
        self.assertEqual(self.run_page("README.md", begun=False), (4, 1))

    def test_of_getting_started(self):
        self.assertEqual(self.run_page("docs/getting-started.md", begun=False), (6, 1))

    def test_of_other_pages(self):
        self.assertEqual(self.run_page("docs/bytes.md"), (2, 0))
        self.assertEqual(self.run_page("docs/configuration.md"), (1, 0))
        self.assertEqual(self.run_page("docs/identity.md", begun=False), (5, 0))


class VersionTest(unittest.TestCase):
    def test_of_the_readme_is_that_of_the_build(self):
        version = re.search(r"^project\(warpline VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
        self.assertIn(f"Version {version}. ", (ROOT / "README.md").read_text())


class LinksTest(unittest.TestCase):
    def test_lead_to_files_and_headings(self):
        # Not below build/, where there are those of others.
        pages = [page for kind in ("*.md", "docs/**/*.md", "client/**/*.md", "tests/**/*.md") for page in ROOT.glob(kind)
                 if "node_modules" not in page.parts]
        broken, seen = [], 0
        for page in pages:
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, heading = target.partition("#")
                other = (page.parent / path).resolve() if path else page
                seen += 1
                if not other.exists() or heading and heading not in headings(other):
                    broken.append(f"{page.relative_to(ROOT)}: {target}")
        self.assertEqual(broken, [])
        self.assertGreater(seen, 50)


def headings(page):
    """As GitHub makes links of them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


if __name__ == "__main__":
    unittest.main()
