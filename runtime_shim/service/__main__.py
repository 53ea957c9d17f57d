"""`python -m sassxlate.runtime_shim.service`: starts the translation service."""

from sassxlate.runtime_shim.service.start import main

if __name__ == "__main__":
    main()
