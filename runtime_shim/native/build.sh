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
