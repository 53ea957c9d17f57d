// In place of libFuzzer where the compiler has none: `fuzz_X [-runs=N] [-seed=N] FILE...` runs each file, then N
// random changes of them.  Directories are not walked.
#include "fuzz.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<uint8_t>;

// On the heap and of exactly its size, so that a read beyond it is seen.
void run(const Bytes &bytes) {
  uint8_t *exact = static_cast<uint8_t *>(malloc(bytes.size() ? bytes.size() : 1));
  if (!exact) abort();
  std::copy(bytes.begin(), bytes.end(), exact);
  LLVMFuzzerTestOneInput(exact, bytes.size());
  free(exact);
}

bool read(const char *path, Bytes &out) {
  FILE *file = fopen(path, "rb");
  if (!file) return false;
  uint8_t buffer[65536];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;) out.insert(out.end(), buffer, buffer + n);
  fclose(file);
  return true;
}

void change(Bytes &bytes, const std::vector<Bytes> &all, std::mt19937_64 &random) {
  static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe, ' ', '\n', '-', '0', '9', '"', '\\'};
  size_t at = bytes.empty() ? 0 : random() % bytes.size();
  switch (random() % 7) {
    case 0: bytes.resize(at); break;
    case 1: bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(at), edges[random() % sizeof edges]); break;
    case 2: if (!bytes.empty()) bytes[at] = edges[random() % sizeof edges]; break;
    case 3: if (!bytes.empty()) bytes[at] = static_cast<uint8_t>(bytes[at] ^ 1u << random() % 8); break;
    case 4: if (!bytes.empty()) bytes.erase(bytes.begin() + static_cast<ptrdiff_t>(at)); break;
    case 5:
      for (size_t i = 0; i < 8 && at + i < bytes.size(); ++i) bytes[at + i] = random() % 2 ? 0xff : 0;
      break;
    default: {
      const Bytes &other = all[random() % all.size()];
      if (other.empty()) break;
      size_t from = random() % other.size(), count = std::min<size_t>(random() % 64 + 1, other.size() - from);
      bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(at), other.begin() + static_cast<ptrdiff_t>(from),
                   other.begin() + static_cast<ptrdiff_t>(from + count));
    }
  }
}

}  // namespace

int main(int argc, char **argv) {
  std::vector<Bytes> all;
  unsigned long runs = 0, seed = 1;
  for (int i = 1; i < argc; ++i) {
    if (!strncmp(argv[i], "-runs=", 6)) {
      runs = strtoul(argv[i] + 6, nullptr, 10);
    } else if (!strncmp(argv[i], "-seed=", 6)) {
      seed = strtoul(argv[i] + 6, nullptr, 10);
    } else {
      all.emplace_back();
      if (!read(argv[i], all.back())) {
        fprintf(stderr, "%s: cannot be read\n", argv[i]);
        return 2;
      }
    }
  }
  for (const Bytes &bytes : all) run(bytes);
  std::mt19937_64 random(seed);
  for (unsigned long i = 0; i < runs && !all.empty(); ++i) {
    Bytes bytes = all[random() % all.size()];
    for (uint64_t times = 1 + random() % 4; times--;) change(bytes, all, random);
    run(bytes);
  }
  printf("%zu files, %lu changes\n", all.size(), runs);
  return 0;
}
