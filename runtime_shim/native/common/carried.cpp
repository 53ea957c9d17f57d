#include "carried.h"

#include "blake2b.h"
#include "log.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <link.h>
#include <mutex>

namespace sx {
namespace {

constexpr char kMagic[] = "SXCARRY1";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeader = 96, kEntry = 48;
constexpr uint64_t kMostEntries = 1u << 24;

uint64_t number(const uint8_t *at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) value = value << 8 | at[i];
  return value;
}

bool within(uint64_t offset, uint64_t length, uint64_t size) { return offset <= size && length <= size - offset; }

bool has_digest(const uint8_t *data, size_t size, const uint8_t *digest) {
  Blake2b hash(16);
  hash.update(data, size);
  uint8_t sum[16];
  hash.digest(sum);
  return memcmp(sum, digest, sizeof sum) == 0;
}

// What one program or library carries.
struct Carrier {
  const uint8_t *data = nullptr;
  size_t size = 0;
  bool program = false;
  CarriedIndex index;
};

struct State {
  std::mutex mutex;
  bool looked = false;
  unsigned long long added = 0, removed = 0;  // of objects, when we looked
  std::vector<Carrier> all;                   // the program's first
  std::string chosen;
};

State &state() {
  static State *const one = new State;
  return *one;
}

void say_damaged(const char *what) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) log_line("SX0791: the translation that the program carries is damaged: %s", what);
}

int visit(dl_phdr_info *info, size_t, void *user) {
  auto &all = *static_cast<std::vector<Carrier> *>(user);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || segment.p_flags != PF_R || segment.p_filesz < kHeader) continue;
    Carrier found;
    found.data = reinterpret_cast<const uint8_t *>(info->dlpi_addr + segment.p_vaddr);
    found.size = segment.p_filesz;
    found.program = !info->dlpi_name || !*info->dlpi_name;
    if (memcmp(found.data, kMagic, 8) == 0) all.push_back(std::move(found));
  }
  return 0;
}

int count(dl_phdr_info *info, size_t size, void *user) {
  auto *numbers = static_cast<unsigned long long *>(user);
  if (size < offsetof(dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) return 1;
  numbers[0] = info->dlpi_adds;
  numbers[1] = info->dlpi_subs;
  return 1;
}

bool ignored() { return !env_string("SASSXLATE_CACHE_TAG").empty(); }

// Looks again where something was loaded or closed since.  Under the state's mutex.
const std::vector<Carrier> &carriers(State &s) {
  unsigned long long now[2] = {0, 0};
  dl_iterate_phdr(count, now);
  if (s.looked && s.added == now[0] && s.removed == now[1]) return s.all;
  s.looked = true;
  s.added = now[0];
  s.removed = now[1];
  std::vector<Carrier> found;
  if (!ignored()) dl_iterate_phdr(visit, &found);
  for (Carrier &one : found)
    if (!read_carried_index(one.data, one.size, one.index)) say_damaged("its index");
  std::stable_partition(found.begin(), found.end(), [](const Carrier &one) { return one.program; });
  s.all = std::move(found);
  return s.all;
}

std::string setting(const Carrier &carrier, const std::string &name) {
  const std::string &text = carrier.index.settings;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (text.compare(at, name.size() + 1, name + " ") == 0) return text.substr(at + name.size() + 1, end - at - name.size() - 1);
    at = end + 1;
  }
  return "";
}

}  // namespace

bool read_carried_index(const uint8_t *data, size_t size, CarriedIndex &out) {
  out = CarriedIndex();
  if (size < kHeader || memcmp(data, kMagic, 8) != 0 || number(data + 8, 4) != kVersion) return false;
  const uint64_t total = number(data + 16, 8), index = number(data + 24, 8), length = number(data + 32, 8);
  const uint64_t entries = number(data + 40, 8), settings = number(data + 48, 8);
  if (total > size || !within(index, length, total) || entries > kMostEntries || entries > length / kEntry) return false;
  const uint64_t names = entries * kEntry;
  if (settings > length - names || !has_digest(data + index, length, data + 64)) return false;
  const uint8_t *table = data + index, *text = table + names;
  const uint64_t room = length - names;
  out.settings.assign(reinterpret_cast<const char *>(text), settings);
  out.entries.reserve(entries);
  for (uint64_t i = 0; i < entries; ++i) {
    const uint8_t *row = table + i * kEntry;
    const uint64_t name = number(row, 8), name_size = number(row + 8, 8);
    CarriedEntry entry;
    entry.offset = number(row + 16, 8);
    entry.size = number(row + 24, 8);
    memcpy(entry.digest, row + 32, sizeof entry.digest);
    if (!within(name, name_size, room) || !within(entry.offset, entry.size, total)) return false;
    entry.name.assign(reinterpret_cast<const char *>(text + name), name_size);
    if (!out.entries.empty() && out.entries.back().name >= entry.name) return false;
    out.entries.push_back(std::move(entry));
  }
  return true;
}

bool program_carries() {
  State &s = state();
  std::lock_guard<std::mutex> guard(s.mutex);
  const std::vector<Carrier> &all = carriers(s);
  return !all.empty() && all.front().program;
}

bool something_carried() {
  State &s = state();
  std::lock_guard<std::mutex> guard(s.mutex);
  return !carriers(s).empty();
}

std::string carried_setting(const std::string &name) {
  std::vector<std::string> all = carried_settings(name);
  return all.empty() ? "" : all.front();
}

std::vector<std::string> carried_settings(const std::string &name) {
  State &s = state();
  std::lock_guard<std::mutex> guard(s.mutex);
  std::vector<std::string> found;
  for (const Carrier &one : carriers(s)) found.push_back(setting(one, name));
  return found;
}

bool find_carried(const std::string &target, const std::string &area, const std::string &name, CarriedBytes &out) {
  State &s = state();
  std::lock_guard<std::mutex> guard(s.mutex);
  const std::string wanted = target + "/" + area + "/" + name;
  for (const Carrier &one : carriers(s)) {
    const std::vector<CarriedEntry> &entries = one.index.entries;
    auto at = std::lower_bound(entries.begin(), entries.end(), wanted,
                               [](const CarriedEntry &entry, const std::string &text) { return entry.name < text; });
    if (at == entries.end() || at->name != wanted) continue;
    out = {one.data + at->offset, at->size};
    if (has_digest(out.data, out.size, at->digest)) return true;
    say_damaged(wanted.c_str());
  }
  return false;
}

bool read_carried(const std::string &area, const std::string &name, std::string &out) {
  CarriedBytes bytes;
  if (!find_carried(carried_target(), area, name, bytes)) return false;
  out.assign(reinterpret_cast<const char *>(bytes.data), bytes.size);
  return true;
}

std::string carried_target() {
  State &s = state();
  std::string chosen;
  {
    std::lock_guard<std::mutex> guard(s.mutex);
    chosen = s.chosen;
  }
  const std::string all = carried_setting("targets");
  return env_string("SASSXLATE_TARGET", chosen.empty() ? all.substr(0, all.find(' ')) : chosen);
}

void choose_carried_target(const std::string &target) {
  State &s = state();
  std::lock_guard<std::mutex> guard(s.mutex);
  s.chosen = target;
}

}  // namespace sx
