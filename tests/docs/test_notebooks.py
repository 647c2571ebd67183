"""Examples run as the notebooks that the gallery offers for download; a first fit in a notebook tells what it does."""

import json
import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.notebook


def test_an_example_runs_as_a_notebook(tmp_path, monkeypatch):
    """The site runs all of them as scripts, and makes the notebooks from the same blocks."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook_of = pytest.importorskip("sphinx_gallery.notebook")
    from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    _, blocks = split_code_and_text_blocks(EXAMPLES / "plot_08_a_teams_budget.py")
    conf = {**DEFAULT_GALLERY_CONF, "src_dir": str(tmp_path)}
    made = notebook_of.jupyter_notebook(blocks, conf, str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = nbformat.reads(json.dumps(made), as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": tmp_path}}
    ).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    assert any(cell.outputs for cell in code)


FIRST_FIT = """
import numpy as np
import dpsparse.progress
from dpsparse import Domain, DPGradientClassifier

dpsparse.progress._SILENCE = 0.0  # as if the fit took longer than some seconds
X = np.random.default_rng(0).uniform(-1, 1, (2000, 5))
DPGradientClassifier(Domain(classes=[0, 1])).fit(X, (X[:, 0] > 0).astype(int));
"""


def test_a_first_fit_in_a_notebook_shows_progress_and_why_it_takes_long(tmp_path, monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "empty"))
    cell = nbformat.v4.new_code_cell(FIRST_FIT)
    nbclient.NotebookClient(nbformat.v4.new_notebook(cells=[cell]), timeout=300).execute()
    shown = "".join(output.text for output in cell.outputs if output.get("name") == "stderr")
    assert "dpsparse: compiling for this machine (once, some seconds)" in shown
    assert "the code is kept" in shown
    assert re.search(r"^DPGradientClassifier: .+ \d+%, \d+ s$", shown, re.MULTILINE)
