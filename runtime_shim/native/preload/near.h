// Memory within a near jump's reach of an image.
#pragma once
#include <cstddef>
#include <cstdint>

#include "image.h"

namespace sx::preload {

// Maps `size` bytes (a multiple of the page size), readable and writable, so near that a near jump leads from
// every byte of the image to every byte of it; nullptr if no free addresses are that near.
unsigned char *map_near(const Image &image, size_t size);

}  // namespace sx::preload
