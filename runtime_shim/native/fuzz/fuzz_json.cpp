// common/json.cpp: any text, and what quote() makes of any bytes.
#include "fuzz.h"

#include "json.h"

using namespace sx;

namespace {

size_t visit(const json::Value &value) {
  size_t count = 1;
  fuzz::touch(value.string.data(), value.string.size());
  for (const json::Value &each : value.array) count += visit(each);
  for (const auto &member : value.object) {
    SX_HOLDS(&value[member.first.c_str()] == &member.second || member.first.find('\0') != std::string::npos);
    count += visit(member.second);
  }
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  json::Value value, back;
  if (json::parse(text, value)) SX_HOLDS(visit(value) <= size);
  SX_HOLDS(json::parse(json::quote(text), back) && back.kind == json::Value::Kind::String && back.string == text);
  return 0;
}
