#include "json.h"

#include <cstdio>
#include <cstdlib>

namespace sx::json {
namespace {

constexpr int kMaxDepth = 64;

void append_utf8(std::string &out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

// How many bytes at `at` are one character of UTF-8 (RFC 3629); 0 if they are not.
size_t utf8_length(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
  auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first < 0xf0) {
    bool shortest = first != 0xe0 || second >= 0xa0, surrogate = first == 0xed && second >= 0xa0;
    return follows(1) && follows(2) && shortest && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first < 0xf5) {
    bool in_range = (first != 0xf0 || second >= 0x90) && (first != 0xf4 || second < 0x90);
    return follows(1) && follows(2) && follows(3) && in_range ? 4 : 0;
  }
  return 0;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  bool document(Value &out) {
    if (!value(out, 0)) return false;
    space();
    return at_ == text_.size();
  }

 private:
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' ||
                                  text_[at_] == '\r'))
      ++at_;
  }

  bool take(char c) {
    space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool word(std::string_view name) {
    if (text_.substr(at_, name.size()) != name) return false;
    at_ += name.size();
    return true;
  }

  bool value(Value &out, int depth) {
    space();
    if (depth > kMaxDepth || at_ >= text_.size()) return false;
    switch (text_[at_]) {
      case '{': return object(out, depth);
      case '[': return array(out, depth);
      case '"': out.kind = Value::Kind::String; return string(out.string);
      case 't': out.kind = Value::Kind::Bool; out.boolean = true; return word("true");
      case 'f': out.kind = Value::Kind::Bool; return word("false");
      case 'n': return word("null");
      default: return number(out);
    }
  }

  bool number(Value &out) {
    std::string digits;
    while (at_ < text_.size() && digits.size() < 64 &&
           (std::string_view("+-.eE").find(text_[at_]) != std::string_view::npos ||
            (text_[at_] >= '0' && text_[at_] <= '9')))
      digits += text_[at_++];
    char *end = nullptr;
    out.kind = Value::Kind::Number;
    out.number = strtod(digits.c_str(), &end);
    if (digits.empty() || *end) return false;
    bool whole = digits.find_first_of(".eE") == std::string::npos;
    bool fits = out.number > -9.2e18 && out.number < 9.2e18;
    out.integer = whole ? strtoll(digits.c_str(), nullptr, 10)
                        : (fits ? static_cast<int64_t>(out.number) : 0);
    return true;
  }

  bool hex4(uint32_t &out) {
    if (text_.size() - at_ < 4) return false;
    out = 0;
    for (int i = 0; i < 4; ++i) {
      char c = text_[at_++];
      unsigned digit;
      if (c >= '0' && c <= '9') digit = static_cast<unsigned>(c - '0');
      else if (c >= 'a' && c <= 'f') digit = static_cast<unsigned>(c - 'a' + 10);
      else if (c >= 'A' && c <= 'F') digit = static_cast<unsigned>(c - 'A' + 10);
      else return false;
      out = out << 4 | digit;
    }
    return true;
  }

  bool escape(std::string &out) {
    if (at_ >= text_.size()) return false;
    char c = text_[at_++];
    switch (c) {
      case '"': case '\\': case '/': out += c; return true;
      case 'b': out += '\b'; return true;
      case 'f': out += '\f'; return true;
      case 'n': out += '\n'; return true;
      case 'r': out += '\r'; return true;
      case 't': out += '\t'; return true;
      case 'u': break;
      default: return false;
    }
    uint32_t high, low;
    if (!hex4(high)) return false;
    if (high >= 0xd800 && high < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      if (!hex4(low) || low < 0xdc00 || low > 0xdfff) return false;
      high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    }
    if (high >= 0xdc80 && high <= 0xdcff) out += static_cast<char>(high - 0xdc00);  // as quote() writes it
    else append_utf8(out, high);
    return true;
  }

  bool string(std::string &out) {
    if (!take('"')) return false;
    while (at_ < text_.size()) {
      char c = text_[at_++];
      if (c == '"') return true;
      if (c == '\\') {
        if (!escape(out)) return false;
      } else {
        out += c;
      }
    }
    return false;
  }

  bool array(Value &out, int depth) {
    out.kind = Value::Kind::Array;
    if (!take('[')) return false;
    if (take(']')) return true;
    do {
      out.array.emplace_back();
      if (!value(out.array.back(), depth + 1)) return false;
    } while (take(','));
    return take(']');
  }

  bool object(Value &out, int depth) {
    out.kind = Value::Kind::Object;
    if (!take('{')) return false;
    if (take('}')) return true;
    do {
      std::string key;
      space();
      if (!string(key) || !take(':')) return false;
      Value &member = out.object[key];
      member = Value();
      if (!value(member, depth + 1)) return false;
    } while (take(','));
    return take('}');
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

const Value &Value::operator[](const char *key) const {
  static const Value null;
  auto found = object.find(key);
  return found == object.end() ? null : found->second;
}

std::string Value::text(const std::string &fallback) const {
  return kind == Kind::String ? string : fallback;
}

bool parse(std::string_view text, Value &out) { return Parser(text).document(out); }

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (size_t at = 0, length; at < text.size(); at += length) {
    char c = text[at], code[8];
    length = utf8_length(text, at);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (length == 1 && static_cast<unsigned char>(c) < 0x20) {
      snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned char>(c));
      out += code;
    } else if (!length) {  // as Python's surrogateescape: a path may hold any bytes
      snprintf(code, sizeof code, "\\udc%02x", static_cast<unsigned char>(c));
      out += code;
      length = 1;
    } else {
      out += text.substr(at, length);
    }
  }
  return out + '"';
}

}  // namespace sx::json
