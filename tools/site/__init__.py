"""The documentation site: pages of the repository and generated reference, made by Sphinx."""
