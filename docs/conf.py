"""The documentation site: `make docs` builds it from these pages, the gallery scripts and the docstrings.

The source is the whole working tree, so that links such as `../benchmarks/RESULTS.md` lead to pages here as they do in a checkout.
Nothing is fetched, neither while building nor by the pages: formulas are MathML, fonts are the reader's.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

import reduset  # noqa: E402  the package beside these pages, not one installed elsewhere

project = "reduset"
author = "the reduset authors"
copyright = author
version = release = reduset.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "site_contents",
    "site_docstrings",
    "site_mathml",
    "site_speed",
]

# The chapters of the site, in the order of the sidebar. Pages that do not exist are left out; those in no chapter come last.
chapters = {
    "Begin": ["start", "glossary", "command", "files", "report", "gallery/index"],
    "Make data small": ["sketch", "compress", "cover", "select", "certificate", "mixtures"],
    "Use the small set": ["study", "cohort", "anndata", "drift", "proportions", "density", "modes", "spectral", "svm", "features"],
    "Large data": ["scaling", "stream", "gpu"],
    "Coming from another library": ["from_scikit_learn", "from_scipy", "from_kdepy", "from_coreax", "from_quapy", "from_shap"],
    "Reference": ["reference", "mathematics", "../benchmarks/RESULTS"],
    "Project": ["../README", "design", "../CONTRIBUTING", "releasing", "../CHANGELOG", "../SECURITY", "../CODE_OF_CONDUCT"],
}

root_doc = "docs/index"
pages_at_the_top = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md"]
include_patterns = ["docs/**", *pages_at_the_top, "benchmarks/RESULTS.md"]
exclude_patterns = [".[a-z]*", "build", "dist", "out", "src", "tests", "docs/_templates"]
templates_path = [str(HERE / "_templates")]

myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"  # the docstrings say what is meant, in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_attributes_as_param_list = True
default_role = "py:obj"
add_module_names = False

sphinx_gallery_conf = {
    "examples_dirs": "examples/gallery",
    "gallery_dirs": "docs/gallery",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 60,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "within_subsection_order": "site_pictures.place",
    "thumbnail_size": (640, 260),
    "write_computation_times": False,  # its page loads scripts from elsewhere
    "reset_modules": ("matplotlib", "site_pictures.use_style"),
}

smartquotes = False
html_theme = "furo"
html_title = f"reduset {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_root"]  # a first page at the top, which leads to docs/
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"
pygments_style = "friendly"
pygments_dark_style = "monokai"
