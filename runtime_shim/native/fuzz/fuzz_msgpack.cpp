// hip/msgpack.cpp: the metadata of a code object.
#include "fuzz.h"

#include "hip/msgpack.h"

using namespace sx;

namespace {

size_t visit(const msgpack::Value &value) {
  size_t count = 1;
  uint64_t number;
  fuzz::touch(value.bytes.data(), value.bytes.size());
  value.number(number);
  for (const msgpack::Value &each : value.array) count += visit(each);
  for (const auto &entry : value.map) count += visit(entry.first) + visit(entry.second);
  value.find(".name");
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  msgpack::Value value;
  if (msgpack::parse(data, size, value)) SX_HOLDS(visit(value) <= size);
  return 0;
}
