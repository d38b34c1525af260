"""The pages say what is so: their commands run as they stand, and their links lead somewhere.

    pages_test.py BIN_DIR

BIN_DIR: of the daemon and the command line. The blocks of a page are run in their order in a scratch folder that looks
like the checkout. Those of text after another are what it prints. A comment before a block, `<!-- not run by tests: why
-->`, leaves it out; no other one of sh or Python is.
"""

import contextlib
import os
import pathlib
import re
import shutil
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


class Checkout:
    """A folder like the checkout after ./quickstart, in which the latest server's addresses stand for the usual ones."""

    def __init__(self, folder):
        self.folder, self.addresses, self.servers = pathlib.Path(folder), {}, []
        (self.folder / "build/release").mkdir(parents=True)
        (self.folder / "build/release/bin").symlink_to(BIN)
        for name in ("proto", "client/python"):
            shutil.copytree(ROOT / name, self.folder / name,
                            ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        for name in ("deploy", "CMakeLists.txt", "LICENSE"):
            (self.folder / name).symlink_to(ROOT / name)
        local = "127.0.0.1,localhost"
        self.environment = os.environ | {
            "WARPLINED_LISTEN": "127.0.0.1:0", "WARPLINED_METRICS_LISTEN": "127.0.0.1:0",
            "WARPLINED_BACKEND": os.environ.get("WARPLINE_TEST_BACKEND", "cpu"), "no_proxy": local, "NO_PROXY": local,
            "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def run(self, language, text):
        """What the block prints. A server, which has a line to itself, goes on until stop()."""
        if re.fullmatch(DAEMON + ".*\n", text):
            return self.serve(re.sub(r"--(?:metrics-)?listen=\S+|--backend=auto", "", text))
        for usual, own in self.addresses.items():
            text = text.replace(usual, own)
        program = {"sh": ["bash", "-eu", "-o", "pipefail", "-c"], "python": [".venv/bin/python", "-c"]}[language]
        done = subprocess.run([*program, text], cwd=self.folder, env=self.environment, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=120)
        assert done.returncode == 0, f"{text}\nended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def serve(self, text):
        log = self.folder / f"log{len(self.servers)}"
        with open(log, "w") as errors:
            server = subprocess.Popen(["bash", "-c", "exec " + text], cwd=self.folder, env=self.environment, text=True,
                                      stdout=subprocess.PIPE, stderr=errors)
        self.servers.append(server)
        printed = ""
        for line in server.stdout:
            printed += line
            ready = re.fullmatch(r"READY grpc=(\S+) metrics=(\S+) backend=\S+\n", line)
            if ready:
                self.addresses = {SERVER: ready[1], METRICS: ready[2]}
                self.environment["WARPLINE_SERVER"] = ready[1]
                return printed
        server.stdout.close()
        assert server.wait(60) == 0, f"{text}\nended with {server.returncode}:\n{printed}{log.read_text()}"
        self.servers.remove(server)
        return printed

    def stop(self):
        """All servers end well."""
        for server in self.servers:
            server.terminate()
        ends = []
        for server in self.servers:
            try:
                ends.append(server.wait(60))
            except subprocess.TimeoutExpired:
                server.kill()
                ends.append("killed")
            server.stdout.close()
        assert not any(ends), ends


@contextlib.contextmanager
def checkout():
    with tempfile.TemporaryDirectory() as folder:
        made = Checkout(folder)
        try:
            yield made
        finally:
            made.stop()


PAGES = ("README.md", "docs/getting-started.md", "docs/bytes.md", "docs/configuration.md", "docs/identity.md",
         "docs/tutorial.md")


def pages():
    """All, but those below build/, where there are others'."""
    return [page for kind in ("*.md", "docs/**/*.md", "client/**/*.md", "tests/**/*.md") for page in ROOT.glob(kind)
            if "node_modules" not in page.parts]


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

    def test_of_the_tutorial(self):
        self.assertEqual(self.run_page("docs/tutorial.md"), (4, 4))

    def test_of_getting_started(self):
        self.assertEqual(self.run_page("docs/getting-started.md", begun=False), (6, 1))

    def test_of_other_pages(self):
        for name in PAGES[2:]:
            with self.subTest(name):
                self.assertGreater(self.run_page(name, begun=name != "docs/identity.md")[0], 0)

    def test_are_run_on_all_pages_or_it_says_why_not(self):
        for page in pages():
            name = str(page.relative_to(ROOT))
            # Those of the Python package's page are run by its own tests.
            if name not in (*PAGES, "client/python/README.md"):
                left = [text for language, text in blocks(page) if language in ("sh", "python")]
                self.assertEqual(left, [], name)

    def test_have_the_addresses_that_the_daemon_takes_by_itself(self):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("WARPLINED_")}
        told = subprocess.run([BIN / "warplined", "--help"], env=environment, text=True, capture_output=True, check=True)
        text = " ".join(told.stdout.split())
        self.assertRegex(text, rf"--listen=.*?Default {SERVER}\. --metrics-listen=.*?Default {METRICS}\.")


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


def without_blocks(page):
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)


def headings(page):
    """As GitHub makes links of them."""
    titles = re.findall(r"^#+ (.+)$", without_blocks(page), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


if __name__ == "__main__":
    unittest.main()
