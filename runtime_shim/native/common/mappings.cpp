#include "mappings.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace sx {
namespace {

constexpr uintptr_t kPage = 4096;

struct Range {
  uintptr_t at, end;  // what is left to cover
  bool read, write, good;
};

// 0 or the system's errno.
int populate(uintptr_t begin, uintptr_t end, bool write) {
  int result;
  do {
    result = madvise(reinterpret_cast<void *>(begin), end - begin, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  return result ? errno : 0;
}

// An older system, or one that imitates Linux, does not support the call.
bool can_populate() {
  static const bool known = [] {
    static const char here = 0;
    uintptr_t page = reinterpret_cast<uintptr_t>(&here) & ~(kPage - 1);
    return populate(page, page + kPage, false) == 0;
  }();
  return known;
}

bool cover(const Mapping &mapping, void *user) {
  Range &range = *static_cast<Range *>(user);
  if (mapping.end <= range.at) return true;
  range.good = mapping.begin <= range.at && (mapping.read || !range.read) && (mapping.write || !range.write);
  uintptr_t end = std::min(mapping.end, range.end);
  // Past the end of its file a page is mapped but not present.
  if (range.good && mapping.file && mapping.read && can_populate()) {
    int error = populate(range.at, end, false);
    range.good = error == 0 || error == EINVAL;
  }
  range.at = end;
  return range.good && range.at < range.end;
}

bool pages_of(uintptr_t address, uint64_t size, uintptr_t &begin, uintptr_t &end) {
  uintptr_t past;
  if (!size || __builtin_add_overflow(address, size, &past) || past > UINTPTR_MAX - kPage) return false;
  begin = address & ~(kPage - 1);
  end = (past + kPage - 1) & ~(kPage - 1);
  return true;
}

}  // namespace

bool each_mapping(bool (*visit)(const Mapping &mapping, void *user), void *user) {
  // Not that of "self": it is empty once the main thread has ended by pthread_exit.
  FILE *maps = fopen("/proc/thread-self/maps", "re");
  if (!maps) maps = fopen("/proc/self/maps", "re");
  if (!maps) return false;
  char line[512], access[5];
  bool more = true;
  while (more && fgets(line, sizeof line, maps)) {
    bool whole = strchr(line, '\n') != nullptr;
    Mapping mapping = {};
    uintptr_t inode = 0;
    bool parsed = sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %" SCNuPTR, &mapping.begin, &mapping.end, access,
                         &inode) == 4;
    while (!whole && fgets(line, sizeof line, maps)) whole = strchr(line, '\n') != nullptr;
    if (!parsed) continue;
    mapping.read = access[0] == 'r';
    mapping.write = access[1] == 'w';
    mapping.shared = access[3] == 's';
    mapping.file = inode != 0;
    more = visit(mapping, user);
  }
  fclose(maps);
  return true;
}

bool mapped_for(uintptr_t address, uint64_t size, bool read, bool write) {
  Range range = {0, 0, read, write, false};
  if (!pages_of(address, size, range.at, range.end)) return false;
  return each_mapping(cover, &range) && range.good && range.at >= range.end;
}

bool can_access(uintptr_t address, uint64_t size, bool write) {
  uintptr_t begin, end;
  if (!pages_of(address, size, begin, end)) return false;
  int error = can_populate() ? populate(begin, end, write) : EINVAL;
  // Writable memory is readable on this processor, even if the mapping does not allow it.
  if (error == EFAULT && !write) error = populate(begin, end, true);
  // EINVAL: unsupported, or not for this kind of mapping.
  return error == 0 || (error == EINVAL && mapped_for(address, size, true, write));
}

}  // namespace sx
