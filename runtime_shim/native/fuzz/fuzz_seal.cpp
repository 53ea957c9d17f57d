// common/trusted.cpp: the seal at the end of a cache file.
#include "fuzz.h"

#include "blake2b.h"
#include "trusted.h"

using namespace sx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  size_t content = 0;
  if (sealed_size("name", data, size, content)) SX_HOLDS(content + kSealSize == size);
  // A correct seal is accepted, and any flipped bit is not.
  std::string sealed(reinterpret_cast<const char *>(data), size);
  Blake2b hash(16);
  hash.update("name", 5);
  hash.update(sealed);
  uint8_t seal[kSealSize] = "SXSEAL01";
  for (int i = 0; i < 8; ++i) seal[8 + i] = static_cast<uint8_t>(uint64_t{size} >> 8 * i);
  hash.digest(seal + 16);
  sealed.append(reinterpret_cast<const char *>(seal), sizeof seal);
  const uint8_t *bytes = reinterpret_cast<const uint8_t *>(sealed.data());
  SX_HOLDS(sealed_size("name", bytes, sealed.size(), content) && content == size);
  SX_HOLDS(!sealed_size("other", bytes, sealed.size(), content));
  sealed[size ? data[0] * sealed.size() / 256 : 9] ^= 1;
  SX_HOLDS(!sealed_size("name", bytes, sealed.size(), content));
  return 0;
}
