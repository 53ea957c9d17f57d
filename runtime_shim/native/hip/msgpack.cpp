#include "msgpack.h"

#include <cstring>

namespace sx::msgpack {
namespace {

constexpr int kMaxDepth = 32;

class Reader {
 public:
  Reader(const uint8_t *data, size_t size) : data_(data), size_(size) {}

  bool value(Value &out, int depth) {
    uint64_t tag;
    if (depth > kMaxDepth || ++count_ > 1000000 || !big_endian(1, tag)) return false;
    if (tag < 0x80) return natural(out, tag);
    if (tag < 0x90) return map(out, tag & 15, depth);
    if (tag < 0xa0) return array(out, tag & 15, depth);
    if (tag < 0xc0) return bytes(out, Value::Kind::String, tag & 31);
    if (tag >= 0xe0) return integer(out, static_cast<int8_t>(tag));
    uint64_t n = 0;
    switch (tag) {
      case 0xc0: return true;
      case 0xc2:
      case 0xc3: out.kind = Value::Kind::Bool; out.boolean = tag == 0xc3; return true;
      case 0xc4:
      case 0xc5:
      case 0xc6: return big_endian(1u << (tag - 0xc4), n) && bytes(out, Value::Kind::Binary, n);
      case 0xc7:
      case 0xc8:
      case 0xc9: return big_endian(1u << (tag - 0xc7), n) && extension(out, n);
      case 0xca:
      case 0xcb: return real(out, tag == 0xca);
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf: return big_endian(1u << (tag - 0xcc), n) && natural(out, n);
      case 0xd0: return big_endian(1, n) && integer(out, static_cast<int8_t>(n));
      case 0xd1: return big_endian(2, n) && integer(out, static_cast<int16_t>(n));
      case 0xd2: return big_endian(4, n) && integer(out, static_cast<int32_t>(n));
      case 0xd3: return big_endian(8, n) && integer(out, static_cast<int64_t>(n));
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8: return extension(out, 1u << (tag - 0xd4));
      case 0xd9:
      case 0xda:
      case 0xdb: return big_endian(1u << (tag - 0xd9), n) && bytes(out, Value::Kind::String, n);
      case 0xdc:
      case 0xdd: return big_endian(tag == 0xdc ? 2 : 4, n) && array(out, n, depth);
      case 0xde:
      case 0xdf: return big_endian(tag == 0xde ? 2 : 4, n) && map(out, n, depth);
      default: return false;
    }
  }

 private:
  size_t left() const { return size_ - at_; }

  bool big_endian(unsigned size, uint64_t &out) {
    if (left() < size) return false;
    out = 0;
    while (size--) out = out << 8 | data_[at_++];
    return true;
  }

  bool natural(Value &out, uint64_t n) {
    out.kind = Value::Kind::Uint;
    out.natural = n;
    return true;
  }

  bool integer(Value &out, int64_t n) {
    if (n >= 0) return natural(out, static_cast<uint64_t>(n));
    out.kind = Value::Kind::Int;
    out.integer = n;
    return true;
  }

  bool real(Value &out, bool single) {
    uint64_t bits;
    if (!big_endian(single ? 4 : 8, bits)) return false;
    out.kind = Value::Kind::Float;
    if (single) {
      uint32_t narrow = static_cast<uint32_t>(bits);
      float value;
      memcpy(&value, &narrow, sizeof value);
      out.real = value;
    } else {
      memcpy(&out.real, &bits, sizeof bits);
    }
    return true;
  }

  bool bytes(Value &out, Value::Kind kind, uint64_t n) {
    if (left() < n) return false;
    out.kind = kind;
    out.bytes.assign(reinterpret_cast<const char *>(data_ + at_), n);
    at_ += n;
    return true;
  }

  bool extension(Value &out, uint64_t n) { return left() > n && bytes(out, Value::Kind::Extension, n + 1); }

  bool array(Value &out, uint64_t n, int depth) {
    out.kind = Value::Kind::Array;
    if (left() < n) return false;  // every element takes a byte or more
    for (uint64_t i = 0; i < n; ++i) {
      out.array.emplace_back();
      if (!value(out.array.back(), depth + 1)) return false;
    }
    return true;
  }

  bool map(Value &out, uint64_t n, int depth) {
    out.kind = Value::Kind::Map;
    if (left() / 2 < n) return false;
    for (uint64_t i = 0; i < n; ++i) {
      out.map.emplace_back();
      if (!value(out.map.back().first, depth + 1) || !value(out.map.back().second, depth + 1)) return false;
    }
    return true;
  }

  const uint8_t *data_;
  size_t size_, at_ = 0, count_ = 0;
};

}  // namespace

const Value *Value::find(const char *key) const {
  for (const auto &entry : map)
    if (entry.first.kind == Kind::String && entry.first.bytes == key) return &entry.second;
  return nullptr;
}

bool Value::number(uint64_t &out) const {
  if (kind != Kind::Uint) return false;
  out = natural;
  return true;
}

bool parse(const uint8_t *data, size_t size, Value &out) { return Reader(data, size).value(out, 0); }

}  // namespace sx::msgpack
