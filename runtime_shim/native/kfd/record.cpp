// A file per dispatch, DISPATCH.NUMBER in little-endian words: "SXDISP01"; the packet's address; the packet (64 bytes);
// bytes of LDS per workgroup and of scratch per lane (32 bits each); the kernel's name, after its length; the ranges
// that the card may access, after their number: begin, end, 1 where kernels may only read + 2 in host memory; the pages before, after their
// number: address, 4096 bytes; the pages that the kernel changed, likewise.  Pages that are not there are zero.
//
// Pages that the process has never touched are not looked at: a card has ranges of gigabytes.
#include "record.h"

#include "log.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fcntl.h>
#include <memory>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

namespace sx::kfd {
namespace {

constexpr uint64_t kPresent = 1ull << 63, kSwapped = 1ull << 62;
constexpr uint64_t kBatch = 512;  // pages

bool read_own(uint64_t address, void *out, size_t size) {
  iovec local = {out, size}, remote = {reinterpret_cast<void *>(address), size};
  return process_vm_readv(static_cast<pid_t>(syscall(SYS_gettid)), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

bool zero(const std::array<uint8_t, kPage> &page) {
  return std::all_of(page.begin(), page.end(), [](uint8_t byte) { return byte == 0; });
}

struct Closed {
  void operator()(FILE *file) const { fclose(file); }
};

template <typename T>
bool put(FILE *file, const T &value) {
  return fwrite(&value, sizeof value, 1, file) == 1;
}

}  // namespace

Record::Record() : folder_(env_string("SASSXLATE_RECORD_DISPATCHES")) {
  if (!folder_.empty()) before_ = pages(nullptr);
}

Record::Pages Record::pages(const Pages *since) {
  Pages found;
  int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  std::vector<uint64_t> entries(kBatch);
  std::array<uint8_t, kPage> page{};
  for (const CardRange &range : memory_ranges()) {
    for (uint64_t at = range.begin & ~(kPage - 1); at < range.end; at += kBatch * kPage) {
      uint64_t count = std::min(kBatch, (range.end - at + kPage - 1) / kPage), host = at + range.shift;
      // another mapping may have written a page of a file that this one has not touched
      bool known = !range.file && map >= 0 &&
                   pread(map, entries.data(), count * 8, static_cast<off_t>(host / kPage * 8)) == static_cast<ssize_t>(count * 8);
      for (uint64_t i = 0; i < count; ++i) {
        if (known && !(entries[i] & (kPresent | kSwapped))) continue;
        if (!read_own(host + i * kPage, page.data(), kPage)) continue;
        uint64_t address = at + i * kPage;
        if (since) {
          auto then = since->find(address);
          if (then == since->end() ? zero(page) : page == then->second) continue;
        } else if (zero(page)) {
          continue;
        }
        found[address] = page;
      }
    }
  }
  if (map >= 0) close(map);
  return found;
}

void Record::write(const Packet &packet, uint64_t address, const std::string &kernel, uint32_t lds, uint32_t scratch) const {
  if (folder_.empty()) return;
  Pages after = pages(&before_);
  static std::atomic<unsigned> numbers{0};
  char name[32];
  snprintf(name, sizeof name, "/DISPATCH.%06u", numbers.fetch_add(1));
  std::string path = folder_ + name;
  std::unique_ptr<FILE, Closed> file(fopen(path.c_str(), "wbe"));
  bool written = file != nullptr;
  if (written) {
    FILE *to = file.get();
    std::vector<CardRange> ranges = memory_ranges();
    written = fwrite("SXDISP01", 8, 1, to) == 1 && put(to, address) && put(to, packet) && put(to, lds) && put(to, scratch) &&
              put(to, static_cast<uint64_t>(kernel.size())) && fwrite(kernel.data(), 1, kernel.size(), to) == kernel.size() &&
              put(to, static_cast<uint64_t>(ranges.size()));
    for (const CardRange &range : ranges)
      written = written && put(to, range.begin) && put(to, range.end) &&
                put(to, uint64_t{range.read_only} | uint64_t{range.host_memory} << 1);
    for (const Pages *pages : {&before_, static_cast<const Pages *>(&after)}) {
      written = written && put(to, static_cast<uint64_t>(pages->size()));
      for (const auto &[at, page] : *pages) written = written && put(to, at) && fwrite(page.data(), kPage, 1, to) == 1;
    }
    written = fflush(to) == 0 && written;
  }
  if (!written) log_line("SX0877: %s: this dispatch could not be recorded", path.c_str());
}

}  // namespace sx::kfd
