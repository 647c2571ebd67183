"""The site: `make docs` builds it offline, with warnings as errors, into docs/_build/html."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT / "src"), str(HERE / "_ext")]

import dpsparse  # noqa: E402

project = "dpsparse"
author = "The dpsparse developers"
copyright = "the dpsparse developers, BSD-3-Clause"
release = version = dpsparse.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx.ext.mathjax",
    "notes",  # docs/_ext: proofs as formulas, proof links of the API
]
exclude_patterns = [
    "_build",
    "_ext",
    "_templates",
    "gallery/**/*.ipynb",
    "**/sg_execution_times.rst",
    "sg_execution_times.rst",
]
mathjax_path = (
    "mathjax/tex-chtml.js"  # copied by docs/_ext/notes.py; nothing is fetched when a page is read
)
templates_path = ["_templates"]
nitpicky = False
default_role = "code"  # `epsilon` in a docstring is code
highlight_language = "none"  # a block that names no language is output, a diagram or a command

# ---- Markdown: a link is checked by the build, headings are anchors, $ is mathematics.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
# The notes were written for a reader of the repository: a heading may start at a lower level there.
suppress_warnings = ["myst.header"]

# ---- API reference
autosummary_generate = True
toc_object_entries_show_parents = "hide"  # the page says whose methods these are
autodoc_typehints = "none"  # numpydoc states them in words
autodoc_inherit_docstrings = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# ---- Gallery: every example runs, and a failing one fails the build.
os.environ.setdefault("MPLBACKEND", "agg")
warnings.filterwarnings("ignore", message=".*seeded.*")
warnings.filterwarnings("ignore", message=".*without a ledger")  # examples fit made-up rows
sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": os.environ.get("DPSPARSE_EXAMPLES", r"plot_"),
    "ignore_pattern": r"sacro_attacks\.py",  # needs an environment of its own
    "within_subsection_order": "FileNameSortKey",
    "only_warn_on_example_error": False,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
    "plot_gallery": "True",
    "min_reported_time": 1,
    "image_srcset": ["2x"],
    "matplotlib_animations": False,
    "doc_module": ("dpsparse",),
    "backreferences_dir": None,
    "reset_modules": ("matplotlib", "gallery_look.reset_look"),
    "show_signature": False,
}

# ---- Look
html_theme = "pydata_sphinx_theme"
html_title = "dpsparse"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "dpsparse"},
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": True,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "show_prev_next": False,
}
html_sidebars = {"index": [], "install": []}  # pages without a section
html_context = {"default_mode": "auto"}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
