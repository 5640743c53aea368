"""The notebook of `pipelines/notebooks`, executed as it stands."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import nbformat
from conftest import ROOT
from nbclient import NotebookClient
from nbconvert import HTMLExporter


def test_the_notebook_goes_from_profile_to_signature(tmp_path):
    for folder in ("data", "hierarchies", "notebooks"):
        shutil.copytree(ROOT / "pipelines" / folder, tmp_path / folder)
    path = tmp_path / "notebooks" / "release.ipynb"
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "outputs are not kept in the repository"
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}).execute()

    signature = json.loads((tmp_path / "out" / "notebook" / "signature.json").read_text())
    assert signature["verified"] and signature["run"] == "notebook"
    html = [
        output["data"]["text/html"]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "text/html" in output.get("data", {})
    ]
    shown = "".join(html)
    for wanted in ("rows are unique in", "The job is fine", "mean loss (GCP)", "6 trials", "holds", "prosecutor", "<iframe"):
        assert wanted in shown, wanted
    page, _ = HTMLExporter(embed_images=True).from_notebook_node(notebook)
    folder = os.environ.get("THRONG_SHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / "notebook.html").write_text(page, encoding="utf-8")
