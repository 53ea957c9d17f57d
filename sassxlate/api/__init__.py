"""The Python interface: ``import sassxlate as sx``.

The names are those of the package itself, which imports these modules when they are used; their
types are in ``sassxlate/__init__.pyi``.  ``docs/python.md`` shows them at work.
"""
