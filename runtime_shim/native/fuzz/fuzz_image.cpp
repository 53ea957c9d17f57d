// cuda/image.cpp and cuda/capability.cpp: what cuModuleLoadData is given, a pointer without a size.
#include "fuzz.h"

#include "cuda/capability.h"
#include "cuda/image.h"

using namespace sx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *image = fuzz::at_end_of_memory(data, size);
  if (!image) return 0;
  uint32_t magic = 0;
  uint64_t target;
  if (size >= 16) memcpy(&magic, data, sizeof magic);
  if (magic == 0x466243b1) {
    // A wrapper's pointer stays in the input: elsewhere it may meet the sanitizer's own memory.
    memcpy(&target, data + 8, sizeof target);
    target = reinterpret_cast<uint64_t>(image) + target % size;
    memcpy(const_cast<uint8_t *>(image) + 8, &target, sizeof target);
  }
  ImageView view = view_image(image);
  if (view.kind == ImageKind::Unreadable) return 0;
  if (!view.registered) SX_HOLDS(view.data == image);
  SX_HOLDS(view.data >= image && view.data < image + size && view.size <= static_cast<size_t>(image + size - view.data));
  fuzz::touch(view.data, view.size);
  int capability = capability_for(view);
  SX_HOLDS(capability >= 50 && capability < 1000);
  return 0;
}
