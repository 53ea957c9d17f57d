// hip/code_object.cpp: what hipModuleLoadData is given, a pointer without a size.
#include "fuzz.h"

#include "hip/code_object.h"
#include "hip/hip.h"

using namespace sx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *image = fuzz::at_end_of_memory(data, size);
  if (!image) return 0;
  std::unique_ptr<CodeObject> code;
  std::string why;
  int error = read_code_object(image, kTargets[0], code, why);
  SX_HOLDS(error == 0 || error == hipErrorInvalidImage || error == hipErrorNoBinaryForGpu);
  SX_HOLDS((error == 0) == (code != nullptr) && (error == 0 || !why.empty()));
  if (!code) return 0;
  SX_HOLDS(code->bytes.size() <= size);
  for (const KernelInfo &kernel : code->kernels) {
    SX_HOLDS(code->elf.at_vaddr(kernel.entry_vaddr, 4));
    SX_HOLDS(kernel.kernarg_size <= (1u << 20) && kernel.max_flat_workgroup_size <= 1024);
    for (const KernelArg &arg : kernel.args)
      SX_HOLDS(arg.size <= kernel.kernarg_size && arg.offset <= kernel.kernarg_size - arg.size);
    for (uint32_t pc : {0u, 4u, 0x1000u, ~0u}) kernel.sass_at(pc);
  }
  return 0;
}
