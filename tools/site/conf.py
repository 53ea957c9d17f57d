"""Settings of Sphinx for the site; ``python -m tools.site`` calls it."""

from sassxlate import __version__

project = "sassxlate"
project_copyright = "the sassxlate authors; Apache-2.0"
version = release = __version__

extensions = ["myst_parser"]
# Headings get the names that the links of the documents use: GitHub's.
myst_heading_anchors = 4
highlight_language = "text"
smartquotes = False  # -- begins options

html_theme = "furo"
html_title = f"sassxlate {release}"
html_theme_options = {"sidebar_hide_name": False}
html_copy_source = False
html_show_sphinx = False
html_static_path: list[str] = ["static"]
html_css_files = ["site.css"]
