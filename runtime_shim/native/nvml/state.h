// Initialisation, and the devices that the driver library reports.
#pragma once
#include "device_facts.h"
#include "nvml_abi.h"

#include <string>

#define SX_NVML extern "C" __attribute__((visibility("default"))) nvmlReturn_t

namespace sx::nvml {

constexpr unsigned kMostDevices = 64;

// A handle points to one of these; they are never freed, and stay valid after nvmlShutdown as NVML's do.
}  // namespace sx::nvml

struct NvmlDevice {
  unsigned index;
};

namespace sx::nvml {

nvmlReturn_t start();
nvmlReturn_t stop();
bool is_started();

// How many devices there are by now.
unsigned device_count();
// What is known of a device at this moment; false where there is none of this number.
bool facts_of(unsigned index, DeviceFacts &out);
nvmlDevice_t handle_of(unsigned index);
// Whether it is a handle that handle_of() gave out.
bool is_handle(nvmlDevice_t device);

// Text with its final NUL into a buffer: NVML_ERROR_INSUFFICIENT_SIZE where it is too short.
nvmlReturn_t give_text(const std::string &text, char *out, unsigned length);

// The body of a function that needs NVML alone, or a device: `body(index, facts)`.
template <typename Body>
nvmlReturn_t with_library(Body body) {
  return is_started() ? body() : static_cast<nvmlReturn_t>(NVML_ERROR_UNINITIALIZED);
}

template <typename Body>
nvmlReturn_t with_device(nvmlDevice_t device, Body body) {
  return with_library([&]() -> nvmlReturn_t {
    DeviceFacts facts;
    if (!is_handle(device) || !facts_of(device->index, facts)) return NVML_ERROR_INVALID_ARGUMENT;
    return body(device->index, facts);
  });
}

}  // namespace sx::nvml
