// The little JSON that the service's protocol needs.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sx::json {

struct Value {
  enum class Kind { Null, Bool, Number, String, Array, Object };
  Kind kind = Kind::Null;
  bool boolean = false;
  double number = 0;
  int64_t integer = 0;  // the number rounded towards zero
  std::string string;
  std::vector<Value> array;
  std::map<std::string, Value> object;

  // The member `key`, or a null value where there is none.
  const Value &operator[](const char *key) const;
  bool truthy() const { return kind == Kind::Bool && boolean; }
  // The string, or `fallback` where the value is of another kind.
  std::string text(const std::string &fallback = "") const;
  int64_t whole(int64_t fallback = 0) const { return kind == Kind::Number ? integer : fallback; }
};

// Parses a whole document; false on anything malformed or nested deeper than 64 levels.
bool parse(std::string_view text, Value &out);

// `text` as a JSON string with its quotes; bytes that are not UTF-8 are passed as they are.
std::string quote(std::string_view text);

}  // namespace sx::json
