"""Thirteen mistakes that somebody could make, each of which a test finds.

    mutations_test.py BUILD_DIR [NAME ...]

Of each, one source is compiled with the mistake in it and linked into a test binary of the build before the libraries, so
that its definitions are taken instead of theirs; the tests that are named must fail, and pass without it. Nothing in the
tree or in the build changes. Takes about three minutes.
"""

import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Mutation(NamedTuple):
    name: str
    source: str
    right: str  # occurs once in the source
    wrong: str
    binary: str
    tests: str  # a filter of GoogleTest


MUTATIONS = [
    Mutation("a library's product in the row of another", "kernels/cpu/cpu_variants.cc",
             "cpu::GemmOpenblas, nullptr", "cpu::GemmEigen, nullptr", "kernels_tests", "CpuVariants*"),
    Mutation("who is refused is told to come back in an hour", "server/schedule/admission.cc",
             "options_.retry_after);", "absl::Hours(1));", "engine_tests", "Admission*"),
    Mutation("half of the arithmetic of products", "kernels/problem.cc",
             "IsComplex(p.dtype) ? 8 : 2;", "IsComplex(p.dtype) ? 8 : 1;",
             "engine_tests", "*Cost*:*Estimate*"),
    Mutation("buddies are united that are in use", "server/memory/buddy_allocator.cc",
             "buddy >= units_ || state_[buddy] != State::kFree || order_[buddy] != block.order",
             "buddy >= units_ || order_[buddy] != block.order", "engine_tests", "StagingPool*"),
    Mutation("tokens that begin alike are equal", "server/identity/token.cc",
             "EVP_Digest(token.data(), token.size(),", "EVP_Digest(token.data(), 9,", "identity_tests", "*"),
    Mutation("programs of exactly the limit are not cut", "server/device/choose_path.cc",
             "bytes >= limits.cut_bytes", "bytes > limits.cut_bytes", "engine_tests", "ChoosePath*"),
    Mutation("a payload that is longer than its message", "proto/wire/scanner.cc",
             "length > kLengthMax || length > Remaining()", "length > kLengthMax", "server_tests", "WireScanner*"),
    Mutation("rows that are apart are taken for dense", "kernels/reduce/canonical.cc",
             "RowMajorStrides(problem.shape, problem.row_stride)", "RowMajorStrides(problem.shape)", "kernels_tests",
             "CanonicalReduce*"),
    Mutation("a program that is larger than a lane gets no memory", "server/device/cpu_backend.cc",
             "if (needed > options_.lane_bytes) compiled->mapped_bytes = needed;", "", "engine_tests", "CpuScratch*"),
    Mutation("a slice that begins where its array does", "proto/rules/views.cc",
             "if (taken.count > 0) view.offset += taken.start * x.strides[axis];", "", "server_tests", "Views*"),
    Mutation("all arrays that are joined lie at the start", "proto/rules/program_views.cc",
             "at * strides[joined.axis]", "0", "server_tests", "ConvertRun*"),
    Mutation("casts are left out of maps", "kernels/map/code.cc",
             "return node.op == MapOp::kCast && node.dtype == TypeOfValue(static_cast<std::size_t>(node.operands[0]));",
             "return node.op == MapOp::kCast;", "kernels_tests", "MapCode*"),
]


class Build:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        # Some sources are compiled once more for the tests of NVTX.
        self.compiles = {entry["file"]: shlex.split(entry["command"])
                         for entry in json.loads((folder / "compile_commands.json").read_text())
                         if "-DWARPLINE_NVTX" not in entry["command"]}

    def compile(self, source: str, text: str, work: pathlib.Path) -> pathlib.Path:
        """An object of the source with this text."""
        mutant, object_file = work / pathlib.Path(source).name, work / "mutant.o"
        mutant.write_text(text)
        command = self.compiles[str(ROOT / source)]
        command = [str(mutant) if word == str(ROOT / source) else word for word in command]
        command[command.index("-o") + 1] = str(object_file)
        self._run(command)
        return object_file

    def link(self, binary: str, object_file: pathlib.Path, work: pathlib.Path) -> pathlib.Path:
        commands = self._run(["ninja", "-t", "commands", f"bin/{binary}"])
        words = [word for word in shlex.split(commands.splitlines()[-1]) if word not in (":", "&&")]
        linked = work / binary
        place = words.index("-o")
        words[place:place + 2] = [str(object_file), "-o", str(linked)]
        self._run(words)
        return linked

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{shlex.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout


def passes(binary: pathlib.Path, tests: str) -> bool:
    """Whether the tests pass; exits if there are none of that name."""
    listed = subprocess.run([binary, f"--gtest_filter={tests}", "--gtest_list_tests"], capture_output=True, text=True)
    if "\n  " not in listed.stdout:
        sys.exit(f"{binary.name} has no tests {tests}")
    try:
        return subprocess.run([binary, f"--gtest_filter={tests}"], capture_output=True, timeout=120).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = Build(pathlib.Path(sys.argv[1]).resolve())
    wanted = sys.argv[2:]
    survivors = []
    for mutation in MUTATIONS:
        if wanted and mutation.name not in wanted:
            continue
        text = (ROOT / mutation.source).read_text()
        if text.count(mutation.right) != 1:
            sys.exit(f"{mutation.source} has {text.count(mutation.right)} times: {mutation.right}")
        if not passes(build.folder / "bin" / mutation.binary, mutation.tests):
            sys.exit(f"{mutation.binary} --gtest_filter={mutation.tests} fails as it is")
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            mutant = build.compile(mutation.source, text.replace(mutation.right, mutation.wrong), work)
            found = not passes(build.link(mutation.binary, mutant, work), mutation.tests)
        print(f"{'found' if found else 'SURVIVES'}: {mutation.name} ({mutation.source})", flush=True)
        if not found:
            survivors.append(mutation.name)
    if survivors:
        sys.exit(f"no test fails for: {'; '.join(survivors)}")


if __name__ == "__main__":
    main()
