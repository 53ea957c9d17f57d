// The prologue and epilogue of every entry point: reach the driver, make a context current, record the error.
#pragma once
#include "driver.h"
#include "runtime_abi.h"

namespace sx {

// Loads and initialises the driver, once per process: 0, 35 (no driver, or one too old), 100...
int enter();

// enter(), and a current context: the thread's own, otherwise its device's primary one.
int bind();

// The thread's device: that of the current context, otherwise the one chosen with cudaSetDevice, otherwise 0.
int current_device(int *device);

// cudaSetDevice: checks the ordinal and makes its primary context current.
int choose_device(int device);

// Destroys the primary context of the thread's device.
int reset_device();

// Records an error as the thread's last one (success leaves it) and returns it.
int record(int error);
int last_error(bool clear);

// The stream that 0 means in code compiled for a default stream per thread.
inline CUstream per_thread(CUstream stream) { return stream ? stream : kStreamPerThread; }

// An entry point that needs the driver but no context.
template <class F>
int with_driver(F body) {
  int error = enter();
  return record(error ? error : body());
}

// An entry point that needs a current context.
template <class F>
int with_context(F body) {
  int error = bind();
  return record(error ? error : body());
}

}  // namespace sx
