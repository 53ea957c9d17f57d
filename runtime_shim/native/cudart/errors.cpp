// Errors: names, words, and the thread's last one.
#include "state.h"

namespace sx {
namespace {

struct Row {
  int code;
  const char *name, *words;
};

const Row kRows[] = {
#define SX_ERROR(code, name, words) {code, #name, words},
#include "errors.inc"
#undef SX_ERROR
};

const Row *find(int code) {
  for (const Row &row : kRows)
    if (row.code == code) return &row;
  return nullptr;
}

}  // namespace
}  // namespace sx

SX_API_RETURNS(const char *) cudaGetErrorName(cudaError_t error) {
  const sx::Row *row = sx::find(error);
  return row ? row->name : "unrecognized error code";
}

SX_API_RETURNS(const char *) cudaGetErrorString(cudaError_t error) {
  const sx::Row *row = sx::find(error);
  return row ? row->words : "unrecognized error code";
}

SX_API cudaGetLastError() { return sx::last_error(true); }

SX_API cudaPeekAtLastError() { return sx::last_error(false); }
