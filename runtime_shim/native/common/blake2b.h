// BLAKE2b (RFC 7693), unkeyed: the hash that names everything in the cache.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace sx {

class Blake2b {
 public:
  // `digest_size` in bytes, 1 to 64; equals Python's hashlib.blake2b(digest_size=...).
  explicit Blake2b(unsigned digest_size = 16);
  void update(const void *data, size_t size);
  void update(const std::string &text) { update(text.data(), text.size()); }
  // Ends the hash, whose `digest_size` bytes go to `out`; the object may not be updated afterwards.
  void digest(uint8_t *out);
  std::string hex();  // the same in hexadecimal

 private:
  void compress(const uint8_t *block, bool last);

  uint64_t state_[8];
  uint64_t count_ = 0;  // bytes; the 128-bit counter's high word stays 0 below 2^64 bytes
  uint8_t buffer_[128];
  size_t used_ = 0;
  unsigned digest_size_;
};

}  // namespace sx
