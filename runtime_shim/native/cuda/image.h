// A module's image as the application passes it: its kind, its length, and whether it is readable.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sx {

enum class ImageKind { Fatbin, Elf, Text, Unknown, Unreadable };

struct ImageView {
  ImageKind kind = ImageKind::Unknown;
  const uint8_t *data = nullptr;
  size_t size = 0;
  bool registered = false;  // came as the wrapper that compilers emit: it stays while the process lives
};

// Finds the extent from the image's own headers; every byte of it is known to be readable then.
ImageView view_image(const void *image);

}  // namespace sx
