"""`sassxlate bench applications`: packages that people install, run as their users run them.

``declaration`` reads what is to be run, ``environment`` installs it, ``run`` runs and judges it,
``table`` shows it.  It may import the runtime libraries' Python side and everything below it.
"""
