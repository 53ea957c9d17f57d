"""`python -m sassxlate.runtime_shim.service`: starts the translation service."""

import gc

if __name__ == "__main__":
    # Imports make long-lived objects: the collector walks them neither now nor in the workers,
    # which share them; `Service.run` enables it.
    gc.disable()
    from sassxlate.runtime_shim.service.start import main

    main()
