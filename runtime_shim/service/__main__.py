"""`python -m sassxlate.runtime_shim.service`: starts the translation service."""

import gc
import os
import sys

if __name__ == "__main__":
    # Imports make long-lived objects: the collector walks them neither now nor in the workers,
    # which share them; `Service.run` enables it.
    gc.disable()
    if sys.argv[-1] == "--detach":  # before the imports; see client.spawn
        del sys.argv[-1]
        if os.fork():
            os._exit(0)
    from sassxlate.runtime_shim.service.start import main

    main()
