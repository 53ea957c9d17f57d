// Translations that a program or library carries in a segment of its own (`sassxlate embed`, runtime_shim/embed/pack.py):
// files as in the cache, under TARGET/AREA/NAME, with checksums.
//
// They are as trusted as the machine code beside them: both come from one file.  Under `sassxlate run` they are
// ignored, since `run` translates by its own options.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sx {

struct CarriedBytes {
  const uint8_t *data = nullptr;
  size_t size = 0;
};

// Whether the program itself carries its translation: then the service and the cache are never asked.
bool program_carries();

// Whether the program or a library that is loaded carries something.
bool something_carried();

// A setting of the program's, or of the first library that carries something: "targets", "cc", "replace"; "" if none.
std::string carried_setting(const std::string &name);

// That setting of all of them.
std::vector<std::string> carried_settings(const std::string &name);

// The file NAME of an area, for a target; false if none has it, or if it is damaged, which is said once (SX0791).
// It lies in the memory of its program or library, which must not be closed meanwhile.
bool find_carried(const std::string &target, const std::string &area, const std::string &name, CarriedBytes &out);

// A copy of it, under carried_target().
bool read_carried(const std::string &area, const std::string &name, std::string &out);

// SASSXLATE_TARGET, otherwise the target that was chosen, otherwise the first that is carried; "" where nothing is.
std::string carried_target();
void choose_carried_target(const std::string &target);

// The index of what is carried, as it lies at `data`; false if it is damaged or of another version.
struct CarriedEntry {
  std::string name;
  uint64_t offset = 0, size = 0;  // from the start of the segment
  uint8_t digest[16] = {};
};
struct CarriedIndex {
  std::vector<CarriedEntry> entries;  // by name
  std::string settings;               // lines "NAME VALUE"
};
bool read_carried_index(const uint8_t *data, size_t size, CarriedIndex &out);

}  // namespace sx
