"""The notebooks run from their first cell to the last, and have the outputs that they keep.

With FLOWSIEVE_WRITE_DOCS in the environment they are written again with the outputs of this run.
"""

import contextlib
import io
import json
import os
from pathlib import Path

import pytest

pytest.importorskip("polars")

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
each_notebook = pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)


@each_notebook
def test_cells_print_what_they_keep(path, monkeypatch):
    """Without a kernel, which needs more packages."""
    monkeypatch.chdir(EXAMPLES)
    names = {}
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec("".join(cell["source"]), names)
            assert printed.getvalue() == "".join(line for output in cell["outputs"] for line in output.get("text", []))


def texts(notebook):
    """The text that each cell printed, however many messages it came in, and that of its value."""
    cells = [
        "".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", []))
        for cell in notebook.cells
    ]
    assert any(cells)
    return cells


@pytest.mark.notebooks
@each_notebook
def test_a_notebook_runs(path):
    nbclient, nbformat, _ = (pytest.importorskip(name) for name in ("nbclient", "nbformat", "ipykernel"))
    notebook = nbformat.read(path, as_version=4)
    kept = [] if "FLOWSIEVE_WRITE_DOCS" in os.environ else texts(notebook)
    client = nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", record_timing=False, resources={"metadata": {"path": str(EXAMPLES)}}
    )
    client.execute()
    if kept:
        assert texts(notebook) == kept
    else:
        # The kernel writes its version and that of Python here, which are those of one machine.
        notebook.metadata.pop("language_info", None)
        nbformat.write(notebook, path)
