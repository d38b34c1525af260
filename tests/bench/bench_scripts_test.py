"""The scripts of kernels/bench/report/ that need no GPU, on made-up numbers, and the command lines of tests/gpu/. Needs
nothing installed."""

import contextlib
import io
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "kernels" / "bench" / "report"))
import breadth_report
import ncu_table
import pairs
import plot_ladder
import torch_column

SVG = "{http://www.w3.org/2000/svg}"


def sample():
    return json.loads((HERE / "sample_ladder.json").read_text())


def bars(chart):
    return {bar.get("data-name"): float(bar.get("width")) for bar in chart.iter(SVG + "rect")
            if bar.get("class") == "bar"}


class PlotTest(unittest.TestCase):
    def setUp(self):
        self.charts = {name: ElementTree.fromstring(text) for name, text in plot_ladder.charts(sample())}

    def test_each_ladder_with_something_measured_is_drawn(self):
        self.assertEqual(set(self.charts), {"ladder_transpose_f32_100x100.svg", "ladder_gemm_f32_1000x1000x1000.svg",
                                            "roofline.svg"})

    def test_each_measured_row_has_a_bar_as_long_as_its_rate(self):
        found = bars(self.charts["ladder_transpose_f32_100x100.svg"])
        self.assertEqual(list(found), ["memcpy", "fast", "slow"])  # fastest first
        self.assertAlmostEqual(found["fast"] / found["slow"], 4, places=4)
        self.assertAlmostEqual(found["memcpy"] / found["slow"], 4.5, places=4)
        # The roof is the longest.
        self.assertAlmostEqual(found["memcpy"], 0.9 * plot_ladder.CHART, places=2)

    def test_all_is_inside_the_page(self):
        for name, chart in self.charts.items():
            width, height = float(chart.get("width")), float(chart.get("height"))
            for shape in chart.iter():
                for x in (shape.get("x"), shape.get("cx"), shape.get("x1"), shape.get("x2")):
                    self.assertTrue(x is None or 0 <= float(x) <= width, name)
                for y in (shape.get("y"), shape.get("cy"), shape.get("y1"), shape.get("y2")):
                    self.assertTrue(y is None or 0 <= float(y) <= height, name)

    def test_made_up_numbers_say_so(self):
        for name, chart in self.charts.items():
            self.assertIn("MADE-UP", "".join(chart.itertext()), name)

    def test_the_roofline_has_logarithmic_places(self):
        points = {point.find(SVG + "title").text: point for point in self.charts["roofline.svg"].iter(SVG + "circle")
                  if point.get("class") == "point"}
        self.assertEqual(len(points), 2)  # transpositions compute nothing; the sum was not measured
        y = {name.split(": ")[1]: float(point.get("cy")) for name, point in points.items()}
        # 1e13 and 1e12 are one decade apart, and are the range.
        self.assertAlmostEqual(y["shared"] - y["cublas"], plot_ladder.LogAxes.BOTTOM - plot_ladder.LogAxes.TOP, places=1)


class NcuTableTest(unittest.TestCase):
    CSV = "\n".join([
        "==PROF== Connected to process 1",
        '"ID","Kernel Name","Grid Size","gpu__time_duration.sum","dram__bytes_read.sum",'
        '"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",'
        '"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",'
        '"sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum","sm__inst_executed_pipe_tensor.sum"',
        '"","","","ns","Mbyte","","sector/request","inst","inst"',
        '"0","VariantMarker()","(1, 1, 1)","1,000","0","0","0","0","0"',
        '"1","Big(float *)","(512, 1, 1)","20,000","64","1,234","4","0","0"',
        '"2","Small(float *)","(1, 1, 1)","2,000","1","6","32","0","0"',
        '"3","VariantMarker()","(3, 1, 1)","1,000","0","0","0","0","0"',
        '"4","Other","(8, 8, 1)","5,500","0.5","0","8","70","80"'])
    ONCE = {"cases": [{"unit": "B/s", "bytes": 44e6, "flops": 11e6, "rows": [{"name": "two_kernels"}, {"name": "no_kernel"}, {"name": "one_kernel"}]}]}

    def test_kernels_belong_to_the_variant_of_the_marker_before_them(self):
        lines = ncu_table.table("title", self.ONCE, self.CSV).splitlines()
        cells = {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]] for line in lines
                 if line.startswith("|")}
        heading = cells["variant"]
        of = {name: dict(zip(heading, values)) for name, values in cells.items()}
        self.assertNotIn("no_kernel", of)
        # Counts are added up; ratios are those of the longest kernel.
        self.assertEqual(of["two_kernels"], {"us": "22.0", "GB/s": "2,000", "shared-load conflicts": "1,240", "DRAM read MB": "65.0",
                                             "tensor instructions": "0", "sectors/load": "4.0", "kernels": "2"})
        self.assertEqual(of["one_kernel"]["us"], "5.5")
        self.assertEqual(of["one_kernel"]["tensor instructions"], "10")  # 80, of which 70 move constants

    def test_what_kernels_hold_and_wait_for_is_a_table_of_its_own(self):
        text = "\n".join([
            '"ID","Kernel Name","Grid Size","gpu__time_duration.sum","launch__registers_per_thread",'
            '"launch__shared_mem_per_block","smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",'
            '"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"',
            '"","","","ns","register/thread","byte/block","inst","inst"',
            '"1","VariantMarker()","(1, 1, 1)","1,000","16","0","0","0"',
            '"2","Big()","(512, 1, 1)","20,000","72","33,280","1.25","8.5"',
            '"3","Small()","(1, 1, 1)","2,000","255","0","90","0"'])
        lines = ncu_table.table("title", self.ONCE, text).splitlines()
        self.assertEqual(lines[-3:], ["| variant | registers | shared KiB | waits most for |", "|---|---|---|---|",
                                      "| two_kernels | 72 | 32.5 | long_scoreboard 8.5 |"])

    def test_products_count_operations(self):
        case = self.ONCE["cases"][0] | {"unit": "FLOP/s"}
        self.assertIn("| two_kernels | 22.0 | 0.5 |", ncu_table.table("title", {"cases": [case]}, self.CSV))

    def test_no_kernels_are_no_rows(self):
        self.assertEqual(ncu_table.table("title", self.ONCE, "==ERROR== no permission").count("\n|"), 2)


class TorchColumnTest(unittest.TestCase):
    def test_a_row_is_added_with_ratios_to_all_others(self):
        case = sample()["cases"][0]
        torch_column.add_row(case, [3e-7, 2e-7, 4e-7], launches=1)
        torch_column.add_row(case, [3e-7, 2e-7, 4e-7], launches=1)  # again: replaced
        rows = {row["name"]: row for row in case["rows"]}
        self.assertEqual(len(case["rows"]), 5)
        self.assertTrue(math.isclose(rows["torch"]["rate"], 80000 / 3e-7))
        self.assertTrue(math.isclose(rows["fast"]["torch_ratio"], 3))
        self.assertTrue(math.isclose(rows["slow"]["torch_ratio"], 0.75))
        self.assertTrue(math.isclose(rows["torch"]["baseline_ratio"], 8.888888889e-8 / 3e-7))
        self.assertNotIn("torch_ratio", rows["elsewhere"])


class GpuScriptsTest(unittest.TestCase):
    def run_script(self, name, *arguments):
        return subprocess.run([HERE.parent / "gpu" / name, *arguments], capture_output=True, text=True, timeout=60)

    def test_help_names_the_parts(self):
        for name, part in (("run", "sanitize"), ("ladder", "ncu"), ("pack", "--no-build")):
            done = self.run_script(name, "--help")
            self.assertEqual(done.returncode, 0, name)
            self.assertIn(part, done.stdout)

    def test_refuse_what_they_do_not_know(self):
        with tempfile.TemporaryDirectory() as build:
            done = self.run_script("run", build)
            self.assertEqual(done.returncode, 2)
            self.assertIn("warpline-bench-kernels", done.stderr)
            bench = pathlib.Path(build, "bin", "warpline-bench-kernels")
            bench.parent.mkdir()
            bench.touch(0o755)
            for name in ("run", "ladder"):
                done = self.run_script(name, build, build + "/out", "everything")
                self.assertEqual(done.returncode, 2, name)
                self.assertIn("unknown part 'everything'", done.stderr)
        self.assertEqual(self.run_script("pack", "--everything").returncode, 2)


class BreadthReportTest(unittest.TestCase):
    @staticmethod
    def case(label, seconds, torch, spread=0.0):
        def row(name, time, is_baseline):
            return {"name": name, "is_baseline": is_baseline, "status": "ok", "seconds": time,
                    "seconds_least": time - spread, "seconds_greatest": time + spread, "roof_ratio": 0.5}
        return {"op": "reduce", "label": label, "bytes": 1e9,
                "rows": [row("ours", seconds, False), row("torch", torch, True), row("read", seconds / 2, True)]}

    def test_the_best_known_is_no_roof(self):
        slow = breadth_report.Problem(self.case("a", 2e-3, 1e-3))
        self.assertAlmostEqual(slow.torch_ratio, 0.5)
        self.assertAlmostEqual(slow.best_ratio, 0.5)
        fast = breadth_report.Problem(self.case("b", 1e-3, 4e-3))
        self.assertAlmostEqual(fast.torch_ratio, 4)
        self.assertAlmostEqual(fast.best_ratio, 1)

    def test_only_what_is_beyond_the_spread_has_changed(self):
        old = [breadth_report.Problem(self.case(label, 1e-3, 1e-3, spread)) for label, spread in
               (("faster", 1e-5), ("noisy", 2e-4), ("same", 1e-6))]
        new = [breadth_report.Problem(self.case(label, seconds, 1e-3, spread)) for label, seconds, spread in
               (("faster", 5e-4, 1e-5), ("noisy", 8e-4, 1e-4), ("same", 1.01e-3, 1e-6))]
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            breadth_report.compare(new, old)
        self.assertIn("Changed beyond noise: 1 of 3", text.getvalue())
        self.assertIn("faster", text.getvalue())
        self.assertNotIn("noisy", text.getvalue())

    def test_the_map_has_a_square_for_each_problem(self):
        problems = [breadth_report.Problem(self.case(label, 1e-3, 1e-3)) for label in ("a<b", "c", "d")]
        with tempfile.TemporaryDirectory() as folder:
            breadth_report.heat_map(problems, f"{folder}/map.svg")
            root = ElementTree.parse(f"{folder}/map.svg").getroot()
        self.assertEqual(len(root.findall(".//" + SVG + "rect")), 3)


class PairsTest(unittest.TestCase):
    def fake(self, folder, name, factor):
        """A benchmark whose problems take times of their own, and which counts its runs."""
        program = pathlib.Path(folder) / name
        program.write_text(f"""#!/usr/bin/python3
import json, pathlib, sys
runs = pathlib.Path({str(folder)!r}) / "runs"
runs.write_text((runs.read_text() if runs.exists() else "") + "{name[0]}")
step = len(runs.read_text())
def case(label, *rows, buffers="rotating"):
    return {{"label": label, "buffers": buffers,
             "rows": [{{"name": n, "status": "ok", "is_baseline": False, "seconds": s}} for n, s in rows]}}
noise = 1 + 0.05 * (step % 3)
assert sys.argv[1:3] == ["--suite", "breadth"], sys.argv
json.dump({{"cases": [case("changed", ("a", 1e-3 * {factor})), case("same", ("a", 1e-3 * noise)),
                      case("changed", ("a", 3e-3 * {factor}), buffers="warm"),
                      case("both", ("a", 1e-3), ("b", 2e-3 * {factor}))]}}, open(sys.argv[-1], "w"))
""")
        program.chmod(0o755)
        return str(program)

    def test_what_changed_is_told_from_noise_by_processes_in_turns(self):
        with tempfile.TemporaryDirectory() as folder:
            measured = pairs.measure(self.fake(folder, "old", 1), self.fake(folder, "new", 0.5), 10, ["--suite", "breadth"])
            self.assertEqual((pathlib.Path(folder) / "runs").read_text(), "onno" * 5)
        text = pairs.report(pairs.changes_of(measured), 0.02)
        self.assertIn("Changed beyond noise: 3 of 5, in 10 pairs", text)
        self.assertRegex(text, r"changed \(warm\) +3000.00 -> +1500.00 us, 2.000 times")
        self.assertRegex(text, r"changed \(rotating\) +1000.00 -> +500.00 us, 2.000 times")
        self.assertRegex(text, r"both \(rotating\), b +2000.00 -> +1000.00 us, 2.000 times")
        self.assertNotIn("same", text)

    def test_a_benchmark_that_fails_ends_it(self):
        with self.assertRaisesRegex(SystemExit, "exit code 1"):
            pairs.times("/bin/false", [])


if __name__ == "__main__":
    unittest.main()
