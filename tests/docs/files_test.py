"""What pages show and no shell runs: configuration files, problems, JSON, C++.

    files_test.py BIN_DIR

Those of C++ are compiled into BIN_DIR/docs_snippets (cpp_snippets.py), and run if that is there.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from checkout import ROOT, SERVER, blocks, checkout

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
DOCS = ROOT / "docs"


def block(page, beginning):
    """The one of a page that begins so."""
    found = [text for _, text in blocks(DOCS / page) if text.startswith(beginning)]
    assert len(found) == 1, f"{page} has {len(found)} blocks that begin with {beginning}"
    return found[0]


class ConfigurationTest(unittest.TestCase):
    def setUp(self):
        self.made = self.enterContext(checkout(BIN))
        # The files that the example names.
        self.made.run("sh", block("tls.md", "openssl req -x509"))
        self.made.run("sh", block("identity.md", "umask 077"))
        self.file = self.made.folder / "warplined.toml"
        self.text = block("configuration.md", "listen = ").replace("/etc/warpline", str(self.made.folder))

    def check(self, text, **environment):
        """Code and errors of the daemon that is to check this."""
        self.file.write_text(text)
        done = subprocess.run([BIN / "warplined", "--check-config", "--config", self.file.name], cwd=self.made.folder,
                              env=os.environ | environment, text=True, capture_output=True)
        return done.returncode, done.stderr

    def assertValid(self, text):
        code, errors = self.check(text)
        self.assertEqual(code, 0, errors)
        self.assertIn("the configuration is valid", errors)

    def test_the_example_is_valid(self):
        self.assertValid(self.text)

    def test_errors_are_those_of_the_page(self):
        text = self.text.replace("inline-bytes", "inline-byte").replace("lanes = 8", "lanes = 65")
        self.assertEqual(self.check(text, WARPLINED_CPUS="many"), (2, block("configuration.md", "warplined: ")))

    def test_the_table_of_owners_is_valid(self):
        owners = block("identity.md", "[owner.").replace('"..."', f'"{"0" * 64}"')
        (self.made.folder / "tokens.toml").write_text(owners)
        self.assertValid(self.text)


class TlsTest(unittest.TestCase):
    def test_plaintext_beyond_loopback_is_refused_as_the_page_says(self):
        told = re.search(r"^    (warplined: --listen=(\S+): .*\n)", (DOCS / "tls.md").read_text(), re.M)
        done = subprocess.run([BIN / "warplined", f"--listen={told[2]}"], text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (2, told[1]))


class ProblemsTest(unittest.TestCase):
    @unittest.skipUnless((BIN / "warpline-bench-kernels").exists(), "this build has no CUDA")
    def test_lines_are_understood(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(block("../kernels/ladder/README.md", "gemm bf16 128x4096x4096 nt"))
            file.flush()
            done = subprocess.run([BIN / "warpline-bench-kernels", f"--problems={file.name}", "--list"], text=True,
                                  capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("\ngemm "), 3)


class JsonTest(unittest.TestCase):
    """The calls that clients.md shows with buf, which comes from a registry, are made by protobuf's JSON here."""

    def test_requests_give_the_responses_of_the_page(self):
        page = block("clients.md", "$ cat run.json")
        request, response = re.fullmatch(
            r"\$ cat run\.json\n(\{\n.*?^\})\n\$ call [^\n]*\n(\{\n.*?^\})\n\$ base64.*", page, re.M | re.S).groups()
        mistaken = request.replace('"inputs": ["t"]', '"inputs": ["tt"]')
        error = json.loads(block("clients.md", '{\n   "code"'))["message"]
        with checkout(BIN) as made:
            made.run("sh", "warplined\n")
            for number, text in enumerate((request, mistaken)):
                (made.folder / f"{number}.json").write_text(text)
            (made.folder / "call.py").write_text(CALL)
            made.run("sh", "protoc -I proto --python_out=. proto/warpline/v1/warpline.proto\n"
                           "/usr/bin/python3 call.py 0.json >response.json\n"
                           "! /usr/bin/python3 call.py 1.json 2>error")
            got, shown = json.loads((made.folder / "response.json").read_text()), json.loads(response)
            for each in (got, shown):
                each["execution"].pop("stageTimes")
            self.assertEqual(got, shown)
            without_id = error.partition(" (request")[0]
            self.assertIn(without_id, (made.folder / "error").read_text())


CALL = """
import os, pathlib, sys
import grpc
from google.protobuf import json_format
from warpline.v1 import warpline_pb2 as v1

request = json_format.Parse(pathlib.Path(sys.argv[1]).read_text(), v1.RunRequest())
run = grpc.insecure_channel(os.environ["WARPLINE_SERVER"], [("grpc.enable_http_proxy", 0)]).unary_unary(
    "/warpline.v1.KernelService/Run", v1.RunRequest.SerializeToString, v1.RunResponse.FromString)
try:
    response = run(request, timeout=60, metadata=[("x-request-id", "by-hand-1")])
except grpc.RpcError as error:
    sys.exit(error.details())
print(json_format.MessageToJson(response))
"""


@unittest.skipUnless((BIN / "docs_snippets").exists(), "docs_snippets is not built here")
class CppTest(unittest.TestCase):
    def test_snippets_run(self):
        with checkout(BIN) as made:
            socket = f"unix:{made.folder}/socket"
            made.run("sh", f"warplined --listen=127.0.0.1:0 --listen={socket}\n")
            done = subprocess.run([BIN / "docs_snippets", made.addresses[SERVER], socket], text=True,
                                  capture_output=True, timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


class LayersTest(unittest.TestCase):
    """The floors of server/, the uppermost first, in ARCHITECTURE.md."""

    def test_folders_include_only_what_stands_below(self):
        drawing = re.search(r"^  ```text\n  daemon\n(.*?)^  ```", (ROOT / "ARCHITECTURE.md").read_text(), re.M | re.S)
        floors = ["daemon"] + drawing[1].split("\n")
        floor_of = {folder: -number for number, line in enumerate(floors) for folder in re.findall(r"\w+", line)}
        server = ROOT / "server"
        self.assertEqual(set(floor_of), {path.name for path in server.iterdir() if path.is_dir()})
        upwards = []
        for path in server.rglob("*/*.*"):
            folder = path.relative_to(server).parts[0]
            for included in re.findall(r'#include "server/([^"]+)"', path.read_text()):
                other = included.split("/")[0]
                if other != folder and floor_of.get(other, 1) >= floor_of[folder]:
                    upwards.append(f"{path.relative_to(server)} includes {included}")
        self.assertEqual(upwards, [])


class TroubleshootingTest(unittest.TestCase):
    """docs/troubleshooting.md has every message with which the server refuses somebody or does not start."""

    ERROR = re.compile(r"absl::(?:ResourceExhausted|Unavailable|FailedPrecondition|Unauthenticated|Aborted|Unimplemented)Error"
                       r"\(\s*(?:absl::StrCat\()?([^;]*);")
    # Messages that no client and no operator sees.
    INTERNAL = ("server/rpc/inflate.cc", "server/base/read_file.cc", "server/rpc/region_server.cc")

    def test_has_the_messages_of_the_code(self):
        page = " ".join((DOCS / "troubleshooting.md").read_text().split())
        seen, missing = 0, []
        for path in sorted((ROOT / "server").glob("**/*")):
            name = str(path.relative_to(ROOT))
            if path.suffix not in (".cc", ".h") or name.startswith(self.INTERNAL):
                continue
            for error in self.ERROR.findall(path.read_text()):
                parts = [part.replace('\\"', '"').strip(" :,;") for part in re.findall(r'"((?:\\.|[^"\\])*)"', error)]
                longest = max(parts, key=len, default="")
                if len(longest) < 10:
                    continue
                seen += 1
                if longest not in page:
                    missing.append(f"{name}: {longest}")
        self.assertEqual(missing, [])
        self.assertGreater(seen, 20)


if __name__ == "__main__":
    unittest.main()
