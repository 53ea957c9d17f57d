"""``python -m sassxlate`` is the ``sassxlate`` program."""

from sassxlate.cli import main

if __name__ == "__main__":
    main()
