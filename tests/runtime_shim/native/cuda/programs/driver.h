// What the sources of the driver's test program share: its checks, its helpers, how it fails.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define EXPECT(what)                                                \
  do {                                                              \
    if (!(what)) {                                                  \
      printf("FAIL %s:%d: %s\n", __FILE__, __LINE__, #what);        \
      exit(1);                                                      \
    }                                                               \
  } while (0)
#define RESULT(call, expected)                                                              \
  do {                                                                                      \
    CUresult result_ = (call);                                                              \
    if (result_ != (expected)) {                                                            \
      printf("FAIL %s:%d: %s = %d, not %d\n", __FILE__, __LINE__, #call, result_,          \
             int(expected));                                                                \
      exit(1);                                                                              \
    }                                                                                       \
  } while (0)
#define OK(call) RESULT(call, CUDA_SUCCESS)

extern std::vector<char> image;  // the module that the command line names
extern CUdevice device;
extern CUcontext context;

void start();  // the primary context of device 0, current
CUfunction function(const char *name);  // of the image, loaded once
void saxpy_with(CUfunction f, bool packed, CUstream stream);  // launches, checks every element

// Each check exits with 1 at the first surprise.
void launch();
void library();
void mixed();
void variables();
void shared();
void limits();
void extended();
void memory();
void managed();
void managed_advice();
void boxes();
void textures();
void parameters();
void newer();
void streams();
void contexts();
void resolution();
void facts();
void fault();
void forked();
void ending();
void threads();
void bad_image();
void no_code();
void seam();
void reset();
void refused();
void logs();
void virtual_memory();
void read_only_memory();
void access_rights();
void mapped_ranges();
void shared_handles();
void no_access_memory();
void modules();
void ptx();
void ptx_refused();
void ptx_link();
void ptx_link_files();
void ptx_link_refused();
void ptx_result();
