// The holes between mappings are read from /proc/self/maps.  Trying addresses at steps misses small holes, and
// a process with a large reservation just below its libraries has no others.
#include "near.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <tuple>
#include <vector>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace sx::preload {
namespace {

constexpr uintptr_t kPage = 4096;
constexpr uintptr_t kReach = 0x7ff00000;    // of a near jump's 2 GiB; the rest for the instruction itself
constexpr uintptr_t kLowest = 0x10000;      // vm.mmap_min_addr
constexpr uintptr_t kHeap = 256u << 20;     // left to grow above the heap and below a stack, where possible

// Free addresses [low, high) that a mapping may take.
struct Hole {
  uintptr_t low, high;
  bool grows;  // a heap grows into its low end, or a stack into its high end
};

std::vector<Hole> read_holes() {
  std::vector<Hole> holes;
  FILE *maps = fopen("/proc/self/maps", "re");
  if (!maps) return holes;
  char line[4608];
  uintptr_t end = kLowest;
  bool heap = false;
  while (fgets(line, sizeof line, maps)) {
    unsigned long low, high;
    if (sscanf(line, "%lx-%lx", &low, &high) != 2) continue;
    bool stack = strstr(line, "[stack]") != nullptr;
    if (low > end) {
      // Both may need the hole: each keeps its share of it, as far as there is more.
      uintptr_t keep_low = heap ? std::min<uintptr_t>(kHeap, (low - end) / 4) : 0;
      uintptr_t keep_high = stack ? std::min<uintptr_t>(kHeap / 4, (low - end) / 4) : 0;
      holes.push_back({(end + keep_low + kPage - 1) & ~(kPage - 1), (low - keep_high) & ~(kPage - 1), heap || stack});
    }
    end = std::max<uintptr_t>(end, high);
    heap = strstr(line, "[heap]") != nullptr;
  }
  fclose(maps);
  return holes;
}

unsigned char *map_at(uintptr_t at, size_t size) {
  void *p = mmap(reinterpret_cast<void *>(at), size, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (p == reinterpret_cast<void *>(at)) return static_cast<unsigned char *>(p);
  // Kernels before 4.17 take the address as a wish.
  if (p != MAP_FAILED) munmap(p, size);
  return nullptr;
}

}  // namespace

unsigned char *map_near(const Image &image, size_t size) {
  uintptr_t image_low = image.low() & ~(kPage - 1), image_high = (image.high() + kPage - 1) & ~(kPage - 1);
  uintptr_t lowest = image_high > kReach ? image_high - kReach : 0;
  uintptr_t highest = image_low + kReach;
  struct Place {
    uintptr_t at, distance;
    bool grows;
  };
  std::vector<Place> places;
  for (const Hole &hole : read_holes()) {
    uintptr_t low = std::max(hole.low, lowest), high = std::min(hole.high, highest);
    if (low >= high || high - low < size) continue;
    if (high <= image_low)
      places.push_back({high - size, image_low - high, hole.grows});
    else  // above a program its heap begins, which has no mapping before its first use
      places.push_back({low, low - image_high, hole.grows || image.executable});
  }
  // The nearest first, but where something grows last.  Another thread may have mapped there in the meantime.
  std::sort(places.begin(), places.end(), [](const Place &a, const Place &b) {
    return std::tie(a.grows, a.distance, a.at) < std::tie(b.grows, b.distance, b.at);
  });
  for (const Place &place : places)
    if (unsigned char *p = map_at(place.at, size)) return p;
  return nullptr;
}

}  // namespace sx::preload
