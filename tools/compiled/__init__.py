"""Makes C of the translator's modules, with mypyc, for the library of :mod:`sassxlate.compiled`."""
