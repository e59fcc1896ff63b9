"""The documentation site: `make docs` builds it with Sphinx, and every warning is an error."""

import sys
from pathlib import Path

from routelearn import __version__

sys.path.insert(0, str(Path(__file__).parent))

project = "routelearn"
author = "the routelearn authors"
copyright = "the routelearn authors"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "generated"]
source_suffix = {".md": "markdown", ".ipynb": "markdown"}
exclude_patterns = ["runs/**", "**/.ipynb_checkpoints"]
nitpicky = False
highlight_language = "none"
default_role = "code"  # docstrings put names into single backquotes
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True

html_theme = "furo"
html_title = "routelearn"
html_copy_source = False
html_show_sphinx = False
