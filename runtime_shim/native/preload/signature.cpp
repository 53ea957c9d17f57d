// The signatures are text (tools/generate/cudart_signatures.py describes it), embedded in the library: nothing has to be
// found or opened in an application's process.
#include "signature.h"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unordered_map>

#include "blake2b.h"

asm(".pushsection .rodata\n"
    "sx_signatures: .incbin \"" SX_SIGNATURES "\"\n"
    "sx_signatures_end: .byte 0\n"
    ".popsection\n");
extern "C" const char sx_signatures[] __attribute__((visibility("hidden")));
extern "C" const char sx_signatures_end[] __attribute__((visibility("hidden")));

namespace sx::preload {
namespace {

constexpr size_t kAnchorBytes = 32;
constexpr size_t kAnchorStep = 16;

struct Signature {
  std::string_view release, digest, mask, functions;  // the lines "entry", "quiet" and "absent"
  size_t length = 0, anchor = 0;
  uint64_t hash = 0;
};

// The text up to the next '\n', which is taken off `text`.
std::string_view take_line(std::string_view &text) {
  size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

bool take_prefix(std::string_view &line, std::string_view prefix) {
  if (line.substr(0, prefix.size()) != prefix) return false;
  line.remove_prefix(prefix.size());
  return true;
}

// A hexadecimal number, removed from `text` together with the space after it.
uint64_t take_hex(std::string_view &text) {
  uint64_t value = 0;
  while (!text.empty() && text[0] != ' ') {
    char c = text[0];
    value = value << 4 | static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    text.remove_prefix(1);
  }
  if (!text.empty()) text.remove_prefix(1);
  return value;
}

std::vector<Signature> parse() {
  std::vector<Signature> all;
  std::string_view text(sx_signatures, static_cast<size_t>(sx_signatures_end - sx_signatures));
  Signature s;
  while (!text.empty()) {
    const char *at = text.data();
    std::string_view line = take_line(text);
    if (line.substr(0, 6) == "entry " || line.substr(0, 6) == "quiet " || line.substr(0, 7) == "absent ") {
      // Empty, but at its place: it grows by the lines that follow.
      if (s.functions.empty()) s.functions = std::string_view(at, 0);  // NOLINT(bugprone-string-constructor)
      // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): its length is given
      s.functions = std::string_view(s.functions.data(), static_cast<size_t>(text.data() - s.functions.data()));
    } else if (take_prefix(line, "release ")) {
      s.release = line;
    } else if (take_prefix(line, "length ")) {
      s.length = take_hex(line);
    } else if (take_prefix(line, "anchor ")) {
      s.anchor = take_hex(line);
      s.hash = take_hex(line);
    } else if (take_prefix(line, "digest ")) {
      s.digest = line;
    } else if (take_prefix(line, "mask ")) {
      s.mask = line;
    } else if (line == "end") {
      all.push_back(s);
      s = Signature();
    }
  }
  return all;
}

const std::vector<Signature> &signatures() {
  static const std::vector<Signature> all = parse();
  return all;
}

uint64_t window_hash(const unsigned char *p) {
  uint64_t value = 0;
  for (size_t i = 0; i < kAnchorBytes; i += 8) {
    uint64_t word;
    memcpy(&word, p + i, 8);
    value = (value ^ word) * 0x9E3779B97F4A7C15ull;
    value ^= value >> 29;
  }
  return value;
}

// Reads base64 of LEB128 numbers.
class MaskReader {
 public:
  explicit MaskReader(std::string_view text) : text_(text) {}

  bool next(size_t &value) {
    value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
      int byte = next_byte();
      if (byte < 0) return false;
      value |= static_cast<size_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

 private:
  int next_byte() {
    while (bits_ < 8) {
      if (text_.empty()) return -1;
      int digit = digit_of(text_[0]);
      text_.remove_prefix(1);
      if (digit < 0) return -1;
      window_ = window_ << 6 | static_cast<unsigned>(digit);
      bits_ += 6;
    }
    bits_ -= 8;
    return static_cast<int>(window_ >> bits_ & 0xff);
  }

  static int digit_of(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
  }

  std::string_view text_;
  unsigned window_ = 0, bits_ = 0;
};

bool same_code(const Signature &s, const unsigned char *block) {
  static const unsigned char zeros[256] = {};
  Blake2b hash(32);
  MaskReader mask(s.mask);
  size_t at = 0, kept = 0, masked = 0;
  while (mask.next(kept) && mask.next(masked)) {
    if (kept > s.length - at || masked > s.length - at - kept) return false;
    hash.update(block + at, kept);
    at += kept + masked;
    for (; masked > sizeof zeros; masked -= sizeof zeros) hash.update(zeros, sizeof zeros);
    hash.update(zeros, masked);
  }
  hash.update(block + at, s.length - at);
  return hash.hex() == s.digest;
}

void fill(const Signature &s, const unsigned char *block, Match &out) {
  out.release = std::string(s.release);
  out.major = atoi(out.release.c_str());
  out.entries.clear();
  out.sealed = Sealed();
  auto *start = const_cast<unsigned char *>(block);
  std::string_view text = s.functions;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (take_prefix(line, "entry ")) {
      size_t offset = take_hex(line);
      out.entries.push_back({line, start + offset});
    } else if (take_prefix(line, "quiet ")) {
      out.sealed.quiet.push_back(start + take_hex(line));
    } else if (take_prefix(line, "absent ")) {
      out.sealed.absent.push_back(line);
    }
  }
  if (out.sealed.quiet.empty() && out.sealed.absent.empty()) return;
  out.sealed.start = start;
  out.sealed.length = s.length;
}

}  // namespace

bool find_by_signature(const unsigned char *start, size_t size, Match &out, bool &near) {
  // Anchors lie at multiples of 16 of a block that is itself aligned to 16.
  const unsigned char *end = start + size;
  uintptr_t aligned = (reinterpret_cast<uintptr_t>(start) + kAnchorStep - 1) & ~(kAnchorStep - 1);
  uint64_t filter = 0;  // six bits of the hash reject most windows
  for (const Signature &s : signatures()) filter |= uint64_t{1} << (s.hash & 63);
  for (const unsigned char *p = reinterpret_cast<const unsigned char *>(aligned); p + kAnchorBytes <= end;
       p += kAnchorStep) {
    uint64_t hash = window_hash(p);
    if (!(filter >> (hash & 63) & 1)) continue;
    for (const Signature &s : signatures()) {
      if (hash != s.hash) continue;
      near = true;
      if (static_cast<size_t>(p - start) < s.anchor || static_cast<size_t>(end - (p - s.anchor)) < s.length) continue;
      if (!same_code(s, p - s.anchor)) continue;
      fill(s, p - s.anchor, out);
      return true;
    }
  }
  return false;
}

unsigned majors_of(std::string_view name) {
  static const std::unordered_map<std::string_view, unsigned> table = [] {
    std::unordered_map<std::string_view, unsigned> map;
#define SX_NAME(name) map[#name] |= 1;
#include "../cudart/names_12.inc"
#undef SX_NAME
#define SX_NAME(name) map[#name] |= 2;
#include "../cudart/names_13.inc"
#undef SX_NAME
#define SX_NAME(name) map[#name] |= 4;
#include "../cudart/names_11.inc"
#undef SX_NAME
    return map;
  }();
  auto found = table.find(name);
  return found == table.end() ? 0 : found->second;
}

}  // namespace sx::preload
