// cuda/manifest.cpp: a module's manifest and a kernel's launch text.  The driver library relies on what they
// accept, without checking again.
#include "fuzz.h"

#include "cuda/manifest.h"

using namespace sx;

namespace {

void check(const Manifest &m) {
  for (const RelocInfo &reloc : m.relocs) {
    SX_HOLDS(reloc.size == 4 || reloc.size == 8);
    SX_HOLDS(reloc.section < m.sections.size());
    SX_HOLDS(reloc.offset <= m.sections[reloc.section].size);
    SX_HOLDS(reloc.size <= m.sections[reloc.section].size - reloc.offset);
    SX_HOLDS(reloc.kind == RelocInfo::Kind::Unresolved || reloc.target < m.sections.size());
  }
  for (const GlobalInfo &global : m.globals) {
    SX_HOLDS(global.section < m.sections.size());
    SX_HOLDS(global.offset <= m.sections[global.section].size);
    SX_HOLDS(global.size <= m.sections[global.section].size - global.offset);
  }
  for (const KernelInfo &kernel : m.kernels) {
    SX_HOLDS(kernel.bank2 >= -1 && kernel.bank2 < static_cast<int>(m.sections.size()));
    SX_HOLDS(kernel.key.find('/') == std::string::npos && !kernel.name.empty());
    SX_HOLDS(kernel.registers >= 0 && kernel.shared >= 0 && kernel.local >= 0 && kernel.constant >= 0);
    SX_HOLDS(kernel.threads >= 0);
  }
  SX_HOLDS(m.made_key.find('/') == std::string::npos && m.made_key.empty() == m.made_by.empty());
  for (const SectionInfo &section : m.sections) SX_HOLDS(section.file.find('/') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size), error;
  Manifest manifest;
  if (parse_manifest(text, manifest)) check(manifest);
  LaunchInfo launch;
  if (parse_launch(text, launch, error)) {
    SX_HOLDS(launch.kernarg_size <= (1u << 20) && launch.param_base <= launch.kernarg_size);
    SX_HOLDS(launch.param_size <= launch.kernarg_size - launch.param_base);
    for (const FillInfo &fill : launch.fills) SX_HOLDS(fill.offset <= launch.kernarg_size - 4);
  }
  return 0;
}
