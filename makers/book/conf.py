"""Sphinx's configuration of the site. `makers/build_book.py` runs Sphinx."""

from gemmlab import __version__

project = "gemmlab"
author = "the developers of gemmlab"
release = version = __version__
extensions = ["myst_parser"]
exclude_patterns = ["files/**"]
# Headings have anchors like those of code hosts; a link to one that is not there is a warning, and warnings are errors.
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"gemmlab {__version__}"
html_static_path = ["static"]
html_css_files = ["book.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_use_index = False
# A summary of a page that was found would have to be fetched, and a page that is opened from a file may fetch nothing.
html_show_search_summary = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
