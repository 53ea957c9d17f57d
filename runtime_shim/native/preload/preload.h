// The detour: finds CUDA runtimes in what is loaded, and puts ours in their place.
#pragma once

namespace sx::preload {

// Looks at every object that was not there the last time.  Called with the dynamic linker's lock held.
void scan_new_objects();

// Whether it has been called.
bool scanned();

// Whether the dynamic linker reports new objects to us (early.cpp).
bool hooked();

// Once all is relocated, where it does not yet.
void hook_late();

}  // namespace sx::preload
