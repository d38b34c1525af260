"""docs/python.md is what docs/reference makes of the sources, and nothing public lacks a comment.

    reference_test.py
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs/reference"))

import markdown
import proto_comments
import python_page


class ReferenceTest(unittest.TestCase):
    def test_is_up_to_date(self):
        done = subprocess.run(["/usr/bin/python3", "-B", ROOT / "docs/reference", "--check"], text=True,
                              capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Sources(unittest.TestCase):
    """Each test changes a copy."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.python = pathlib.Path(folder.name, "python")
        shutil.copytree(ROOT / "client/python/src", self.python)

    def change(self, path, old, new):
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1))

    def assertLacks(self, page, folder, pattern):
        with self.assertRaisesRegex(markdown.Undocumented, pattern):
            page(folder)


class ProtoTest(unittest.TestCase):
    def test_everything_has_a_comment(self):
        self.assertEqual(list(proto_comments.lacking((ROOT / proto_comments.PATH).read_text())), [])

    def test_what_has_none_is_found(self):
        text = (ROOT / proto_comments.PATH).read_text()
        for old, lacks in (("  // Type of the elements.\n", r"line \d+: Tensor.data_type"),
                           ("// unsigned integer, 2 bytes", r"line \d+: DataType.DATA_TYPE_U16")):
            self.assertIn(old, text)
            (found,) = proto_comments.lacking(text.replace(old, "", 1))
            self.assertRegex(found, lacks)


class PythonTest(Sources):
    def test_a_method_without_a_docstring(self):
        self.change(self.python / "warpline/client.py", '"""Asks the server for its version, devices, operations and limits."""', "")
        self.assertLacks(python_page.page, self.python, r"client.py, line \d+: info has no docstring")

    def test_a_field_without_a_comment(self):
        self.change(self.python / "warpline/reports.py", "  # name of the device", "")
        self.assertLacks(python_page.page, self.python, r"reports.py, line \d+: name has no comment")

    def test_a_new_name_of_the_package(self):
        self.change(self.python / "warpline/__init__.py", '"program",', '"program", "MAX_RETRIES",')
        self.assertLacks(python_page.page, self.python, r"differ in \['MAX_RETRIES'\]")

    def test_an_asynchronous_method_with_other_arguments(self):
        self.change(self.python / "warpline/aio/client.py", "def info(self, *,", "def info(self, all: bool, *,")
        self.assertLacks(python_page.page, self.python, r"Client\.info takes other arguments")


class MarkdownTest(unittest.TestCase):
    def test_lists_stay_lists(self):
        self.assertEqual(markdown.prose("  * One\n    more.\n  * Two."), "- One more.\n- Two.")
        self.assertEqual(markdown.prose("  1. One\n     more.\n  2. Two."), "1. One more.\n2. Two.")

    def test_names_become_links_but_in_headings_and_links(self):
        page = "# Tensor\n\nA Tensor, `Tensor.shape`, [Tensor](#a), `x Tensor`, Tensors."
        linked = "# Tensor\n\nA [Tensor](#tensor), [`Tensor.shape`](#tensor), [Tensor](#a), `x Tensor`, Tensors."
        self.assertEqual(markdown.with_links(page, ["Tensor"]), linked)

    def test_brackets_of_prose_are_no_links(self):
        self.assertEqual(markdown.with_links("In [0, 2), as of Step, see [x](#x).", ["Step"]),
                         "In [0, 2), as of [Step](#step), see [x](#x).")

    def test_headings_that_are_alike_are_refused(self):
        with self.assertRaisesRegex(ValueError, "program"):
            markdown.check_anchors("# Program\n\n## program\n")


if __name__ == "__main__":
    unittest.main()
