// The MessagePack that code objects keep their metadata in.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sx::msgpack {

struct Value {
  enum class Kind { Nil, Bool, Int, Uint, Float, String, Binary, Array, Map, Extension };
  Kind kind = Kind::Nil;
  bool boolean = false;
  int64_t integer = 0;   // Int
  uint64_t natural = 0;  // Uint
  double real = 0;
  std::string bytes;     // String, Binary, Extension
  std::vector<Value> array;
  std::vector<std::pair<Value, Value>> map;

  // The member with the string key `key`, or nullptr.
  const Value *find(const char *key) const;
  // A natural number; false if the value is not one.
  bool number(uint64_t &out) const;
};

// Parses one value; false on truncated or malformed bytes, deep nesting, or more than a million values.
bool parse(const uint8_t *data, size_t size, Value &out);

}  // namespace sx::msgpack
