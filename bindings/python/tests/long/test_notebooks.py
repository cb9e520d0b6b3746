"""Each notebook runs, from an empty folder, and draws what it says."""

import nbclient
import nbformat
import pytest
from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "bindings/python/notebooks").glob("*.ipynb"))


def test_there_is_a_notebook_for_each_part():
    assert {path.stem for path in NOTEBOOKS} == {"streams", "tables", "statistics", "pass"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path):
    book = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells), "outputs are not kept"
    client = nbclient.NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}})
    client.execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
