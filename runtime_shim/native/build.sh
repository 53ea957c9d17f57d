#!/bin/sh
# Builds the libraries and installs them in runtime_shim/lib, where a checkout looks for them.
# Arguments are passed to cmake (for example -DCMAKE_BUILD_TYPE=Debug).
set -e
native=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$native/../.." && pwd)
build=${SX_BUILD_DIR:-$root/build/native}
if command -v ninja >/dev/null 2>&1; then generator=Ninja; else generator="Unix Makefiles"; fi
cmake -S "$native" -B "$build" -G "$generator" -DSX_LIBRARY_DESTINATION=lib "$@" >/dev/null
cmake --build "$build"
cmake --install "$build" --prefix "$root/runtime_shim" >/dev/null
# Host code of single instructions, so that the first run does not make it (a second); without Python it does.
python=${SASSXLATE_PYTHON:-$(command -v python3 || true)}
if [ -n "$python" ]; then
  (cd "$root" && "$python" -m sassxlate.runtime_shim.service.prebuilt "$root/runtime_shim/lib" 2>/dev/null) ||
    echo "no stencils made: the first run will make them"
fi
