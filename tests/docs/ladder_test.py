"""kernels/ladder/README.md against the tables of variants: ladder_test.py BIN_DIR, which has warpline-bench-kernels."""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "kernels" / "bench" / "report"))
import banks
import ladder_table

BENCH = pathlib.Path(sys.argv.pop(1)) / "warpline-bench-kernels"
MADE_OF_SEVERAL = {("reduce", "rows"), ("map", "packs")}
PAGE = ROOT / "kernels" / "ladder" / "README.md"


class LadderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        listing = subprocess.run([BENCH, "--list"], check=True, capture_output=True, text=True).stdout
        cls.rows = ladder_table.rows_of(listing)

    def test_the_page_has_the_rows_and_the_figures_of_the_run_that_it_quotes(self):
        text = PAGE.read_text()
        results = ROOT / "docs" / "benchmarks" / re.search(r"benchmarks/([\w-]+h200-ladder)\.md", text)[1]
        self.assertEqual(text, ladder_table.replaced(text, ladder_table.make(BENCH, results)),
                         f"write it anew: kernels/bench/report/ladder_table.py {BENCH} {results} kernels/ladder/README.md")

    def test_steps_of_an_operation_are_numbered_without_gaps(self):
        for operation, rows in self.rows.items():
            steps = [int(step) for step, _, _ in rows if step != "-"]
            self.assertEqual(steps, list(range(1, len(steps) + 1)), operation)

    def test_names_that_no_chosen_operation_has_are_refused(self):
        def run(*flags):
            return subprocess.run([BENCH, "--list", *flags], capture_output=True, text=True, check=False)

        known = run("--ops=gemm,map", "--variants=cublas,packs")
        self.assertEqual([line.split()[2] for line in known.stdout.splitlines()], ["cublas", "packs"])
        unknown = run("--ops=map", "--variants=cublas")
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("--variants: cublas: no variant of map", unknown.stderr)
        self.assertIn("--ops", run("--ops=gem").stderr)

    def test_every_rung_says_its_limit_and_the_step_after_it(self):
        looked_at = 0
        for operation, rows in self.rows.items():
            climbed = [row for row in rows if row[0] != "-"]
            for (_, name, _), after in zip(climbed, climbed[1:] + [None]):
                if (operation, name) in MADE_OF_SEVERAL:
                    continue
                file = ROOT / ladder_table.file_of(operation, name)
                comment = file.read_text().split("#include")[0].replace("\n// ", " ")
                self.assertIn("Limit: ", comment, file)
                if after:
                    self.assertIn(f"Next, `{after[1]}`", comment, file)
                looked_at += 1
        self.assertGreaterEqual(looked_at, 25)

    def test_the_diagram_of_banks_is_what_the_layouts_give(self):
        self.assertEqual((ROOT / "kernels" / "ladder" / "banks.svg").read_text(), banks.draw())
        self.assertEqual([banks.passes(layout) for _, _, layout in banks.LAYOUTS], [32, 1, 1, 1])


if __name__ == "__main__":
    unittest.main()
