// The code objects that AMD's runtime has loaded, by the addresses of their kernels' descriptors.
#pragma once
#include "../hip/module.h"

#include <cstdint>
#include <memory>
#include <string>

namespace sx::kfd {

// Where the runtime lists what it has loaded, for debuggers (the r_debug of AMDKFD_IOC_RUNTIME_ENABLE).
void set_debug_list(uint64_t r_debug);

// The kernel whose descriptor is at an address of the card, and the module that it is a part of; null with a reason.
std::shared_ptr<Module> loaded_kernel(uint64_t descriptor, Function *&function, std::string &why);

}  // namespace sx::kfd
