#include "counts.h"

#include "launch.h"
#include "log.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace sx {
namespace {

constexpr size_t kPage = 4096;

const std::string &folder() {
  static const std::string path = env_string("SASSXLATE_COUNTS");
  return path;
}

bool write_whole(int fd, const std::string &text) {
  size_t done = 0;
  while (done < text.size()) {
    ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

uint64_t *map_file(const std::string &path, const std::string &head, size_t size) {
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  // Disk blocks are allocated now: a full disk must not end the program later.
  int error = write_whole(fd, head) ? posix_fallocate(fd, 0, static_cast<off_t>(head.size() + size)) : errno;
  void *at = error ? MAP_FAILED
                   : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(head.size()));
  if (at == MAP_FAILED) {
    unlink(path.c_str());
    errno = error ? error : errno;
  }
  close(fd);
  return at == MAP_FAILED ? nullptr : static_cast<uint64_t *>(at);
}

void at_least(uint64_t &word, uint64_t value) {
  uint64_t old = __atomic_load_n(&word, __ATOMIC_RELAXED);
  while (old < value && !__atomic_compare_exchange_n(&word, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

}  // namespace

bool counting() { return !folder().empty(); }

Counts open_counts(const std::string &key, const std::string &kernel, uint32_t blocks) {
  static std::atomic<unsigned> number{0}, said{0};
  std::string path;
  std::string head = "sassxlate-counts 1\nkey " + key + "\nblocks " + std::to_string(blocks) + "\nkernel " + kernel + "\n";
  head.resize((head.size() + kPage) & ~(kPage - 1));
  size_t size = (8 + size_t{blocks}) * sizeof(uint64_t);
  Counts counts;
  do {  // a program that this process was before exec has left files, too
    path = folder() + "/counts-" + std::to_string(getpid()) + "-" + std::to_string(number++);
    counts.words = map_file(path, head, size);
  } while (!counts.words && errno == EEXIST);
  counts.mapped = counts.words ? size : 0;
  if (counts.words) return counts;
  if (said++ == 0) log_line("SX0677: %s: executions are not counted: %s", path.c_str(), strerror(errno));
  counts.words = static_cast<uint64_t *>(calloc(8 + size_t{blocks}, sizeof(uint64_t)));
  return counts;
}

void close_counts(Counts &counts) {
  if (counts.mapped) munmap(counts.words, counts.mapped);
  else free(counts.words);
  counts = Counts();
}

void Counts::launched(const Launch &launch, uint32_t shared) const {
  if (!words) return;
  __atomic_fetch_add(words, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(words + 1, launch.total, __ATOMIC_RELAXED);
  __atomic_fetch_add(words + 2, launch.total * launch.waves(), __ATOMIC_RELAXED);
  at_least(words[3], uint64_t{launch.block[0]} * launch.block[1] * launch.block[2]);
  at_least(words[4], shared);
}

}  // namespace sx
