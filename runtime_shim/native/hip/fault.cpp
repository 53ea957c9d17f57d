// The line about the fault that ended a launch.
#include "log.h"
#include "state.h"
#include "strict.h"
#include "wave.h"

#include <cstdio>
#include <cstring>

namespace sx {
namespace {

// The encoding at an offset of the kernel's code, as "[dc6a0000 04000102] "; "" outside of it.
std::string instruction_at(const Launch &launch, uint32_t pc) {
  const uint8_t *code = launch.module->code->elf.at_vaddr(launch.function->info->entry_vaddr + pc, 8);
  uint32_t words[2];
  if (!code) return "";
  memcpy(words, code, sizeof words);
  char text[32];
  snprintf(text, sizeof text, "[%08x %08x] ", words[0], words[1]);
  return text;
}

// Why the translation put a trap of this number (TRAP_* in lowering); "" of the program's own.
const char *trap_text(uint64_t number) {
  switch (number) {
    case 0x51: return " (no lane can go on: barriers that are never reached together)";
    case 0x52: return " (a return or branch to an address that the cubin does not list)";
    case 0x53: return " (a matrix instruction that only some lanes of a warp execute)";
    case 0x54: return " (a matrix descriptor with a base offset)";
    case 0x55: return " (not a tensor map of cuTensorMapEncode*, or a copy that its map does not allow; libraries that make maps themselves take other kernels with run --arch sm_80)";
    case 0x56: return " (a reduction by a tensor map of a type that has no such operation)";
    case 0x57: return " (a call through a pointer to one of so many functions that they were not translated with the kernel)";
    case 0x58: return " (a read of multicast memory, of which there is none)";
    case 0x59: return " (a copy into the shared memory of another block of a cluster: clusters have one block)";
    default: return "";
  }
}

}  // namespace

int report_fault(const Launch &launch) {
  const FaultRecord &f = launch.fault;
  if (f.kind == 0) return 0;
  const char *kernel = launch.function->info->name.c_str();
  if (f.kind == kFaultMemory) {
    log_line("SX0659: kernel %s: no memory for the stacks or scratch of its workgroups", kernel);
    return hipErrorLaunchOutOfResources;
  }
  struct Row {
    const char *code, *text;
    int error;
  };
  static const Row rows[] = {
      {"SX0669", "unknown fault", hipErrorLaunchFailure},
      {"SX0661", "illegal address", hipErrorIllegalAddress},
      {"SX0662", "misaligned address", hipErrorMisalignedAddress},
      {"SX0663", "trap", hipErrorLaunchFailure},
      {"SX0664", "address outside shared memory (LDS)", hipErrorIllegalAddress},
      {"SX0665", "stack overflow: address outside scratch", hipErrorIllegalAddress},
      {"SX0666", "the program counter left the code", hipErrorLaunchFailure},
      {"SX0667", "strict mode:", hipErrorLaunchFailure},
  };
  static const Row late = {"SX0668", "longer than SASSXLATE_KERNEL_TIME_LIMIT:", hipErrorLaunchTimeOut};
  const Row &row = f.kind == kFaultTime ? late : f.kind < sizeof rows / sizeof rows[0] ? rows[f.kind] : rows[0];
  char address[32];
  snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(f.address));
  std::string what = f.kind == SX_FAULT_STRICT ? strict_text(f.address) : address;
  if (f.kind == kFaultTime) what = std::to_string(config().kernel_time_limit) + " s";
  if (f.kind == SX_FAULT_TRAP) what += trap_text(f.address);
  if (f.kind == SX_FAULT_ADDRESS) what += memory_describe(f.address);
  std::string sass = launch.function->info->sass_at(f.pc);
  if (!sass.empty()) sass = ", from SASS " + sass;
  log_line("%s: kernel %s: /*%04x*/ %s%s %s, lane %u of wave %u, workgroup (%u,%u,%u)%s", row.code, kernel, f.pc,
           instruction_at(launch, f.pc).c_str(), row.text, what.c_str(), f.lane, f.wave, f.group[0], f.group[1],
           f.group[2], sass.c_str());
  return row.error;
}

}  // namespace sx
