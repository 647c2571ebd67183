"""Examples run from top to bottom as the notebooks that the gallery offers for download."""

import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.notebook


@pytest.mark.parametrize(
    "name", ["plot_01_first_model", "plot_07_price_of_many_fits", "plot_08_a_teams_budget"]
)
def test_an_example_runs_as_a_notebook(name, tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook_of = pytest.importorskip("sphinx_gallery.notebook")
    from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    _, blocks = split_code_and_text_blocks(EXAMPLES / f"{name}.py")
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
