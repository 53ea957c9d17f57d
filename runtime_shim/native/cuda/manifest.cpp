#include "manifest.h"

#include <charconv>
#include <string_view>

namespace sx {
namespace {

// Reads a line's fields, which a single space separates; the last one may be the rest of the line.
class Fields {
 public:
  explicit Fields(std::string_view line) : rest_(line) {}

  std::string_view word() {
    size_t space = rest_.find(' ');
    std::string_view found = rest_.substr(0, space);
    rest_ = space == std::string_view::npos ? std::string_view() : rest_.substr(space + 1);
    if (found.empty()) good_ = false;
    return found;
  }

  // A decimal number that T holds.
  template <typename T>
  void number(T &out) {
    std::string_view text = word();
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc() || end != text.data() + text.size()) good_ = false;
  }

  // One that may be negative, and is counted modulo 2^64.
  void wrapping(uint64_t &out) {
    int64_t below = 0;
    if (rest_.substr(0, 1) != "-") return number(out);
    number(below);
    out = static_cast<uint64_t>(below);
  }

  std::string rest() {
    if (rest_.empty()) good_ = false;
    return std::string(rest_);
  }

  bool good() const { return good_; }

 private:
  std::string_view rest_;
  bool good_ = true;
};

template <typename Line>
bool each_line(const std::string &text, Line line) {
  if (text.empty() || text.back() != '\n') return false;  // cut short
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    if (!line(std::string_view(text).substr(at, end - at))) return false;
    at = end + 1;
  }
  return true;
}

bool lies_in(const SectionInfo &section, uint64_t offset, uint64_t size) {
  return offset <= section.size && size <= section.size - offset;
}

bool parse_item(Fields &fields, std::string_view kind, Manifest &out) {
  if (kind == "arch") {
    fields.number(out.arch);
  } else if (kind == "section") {
    SectionInfo item;
    size_t number = 0;
    fields.number(number);
    fields.number(item.size);
    item.file = std::string(fields.word());
    if (item.file == "-") item.file.clear();
    item.name = fields.rest();
    // A manifest names files beside itself only.
    if (number != out.sections.size() || item.file.find('/') != std::string::npos) return false;
    out.sections.push_back(std::move(item));
  } else if (kind == "reloc") {
    RelocInfo item;
    fields.number(item.section);
    fields.number(item.offset);
    std::string_view how = fields.word();
    item.kind = how == "abs64" ? RelocInfo::Kind::Abs64 : RelocInfo::Kind::Abs32Lo;
    item.size = how == "abs64" ? 8 : 4;
    fields.number(item.target);
    fields.wrapping(item.addend);
    if ((how != "abs64" && how != "abs32lo") || item.target >= out.sections.size()) return false;
    out.relocs.push_back(item);
  } else if (kind == "unresolved") {
    RelocInfo item;
    item.kind = RelocInfo::Kind::Unresolved;
    fields.number(item.section);
    fields.number(item.offset);
    fields.number(item.size);
    item.name = fields.rest();
    if (item.size != 4 && item.size != 8) return false;
    out.relocs.push_back(item);
  } else if (kind == "global" || kind == "managed") {
    GlobalInfo item;
    item.managed = kind == "managed";
    fields.number(item.section);
    fields.number(item.offset);
    fields.number(item.size);
    item.name = fields.rest();
    if (item.section >= out.sections.size() || !lies_in(out.sections[item.section], item.offset, item.size)) return false;
    out.globals.push_back(std::move(item));
  } else if (kind == "kernel") {
    KernelInfo item;
    item.key = std::string(fields.word());
    for (int *value : {&item.registers, &item.shared, &item.local, &item.constant, &item.threads, &item.bank2})
      fields.number(*value);
    item.name = fields.rest();
    if (item.key.find('/') != std::string::npos || item.bank2 < -1 || item.bank2 >= static_cast<int>(out.sections.size()))
      return false;
    for (int value : {item.registers, item.shared, item.local, item.constant, item.threads})
      if (value < 0) return false;
    out.kernels.push_back(std::move(item));
  } else if (kind == "param") {
    ParamInfo item;
    fields.number(item.offset);
    fields.number(item.size);
    if (out.kernels.empty()) return false;
    out.kernels.back().params.push_back(item);
  } else if (kind == "fits") {
    if (out.kernels.empty()) return false;
    fields.number(out.kernels.back().fits);
    if (out.kernels.back().fits <= 0) return false;
  } else if (kind == "nocode") {
    fields.number(out.error);
    out.reason = fields.rest();
    if (!out.error) return false;
  } else if (kind == "made") {
    out.made_key = std::string(fields.word());
    fields.number(out.made_by_size);
    fields.number(out.made_by_time);
    out.made_by = fields.rest();
    if (out.made_key.empty() || out.made_key.find('/') != std::string::npos || out.made_by.empty()) return false;
  } else {
    return false;
  }
  return fields.good();
}

struct FillName {
  const char *name;
  FillInfo::Kind kind;
  bool has_value;
};

constexpr FillName kFills[] = {
    {"blockdim.x", FillInfo::Kind::BlockX, false},
    {"blockdim.y", FillInfo::Kind::BlockY, false},
    {"blockdim.z", FillInfo::Kind::BlockZ, false},
    {"griddim.x", FillInfo::Kind::GridX, false},
    {"griddim.y", FillInfo::Kind::GridY, false},
    {"griddim.z", FillInfo::Kind::GridZ, false},
    {"u32", FillInfo::Kind::U32, true},
    {"u64", FillInfo::Kind::U64, true},
    {"shared_window", FillInfo::Kind::SharedWindow, false},
    {"dynamic_shared", FillInfo::Kind::DynamicShared, false},
    {"gridid", FillInfo::Kind::GridId, false},
    {"bank2", FillInfo::Kind::Bank2, false},
    {"bank3", FillInfo::Kind::Bank3, false},
    {"bank4", FillInfo::Kind::Bank4, false},
    {"textures", FillInfo::Kind::Textures, false},
    {"locks", FillInfo::Kind::Locks, false},
    {"explicit_cluster", FillInfo::Kind::ExplicitCluster, true},
    {"reserved_shared", FillInfo::Kind::ReservedShared, true},
    {"stack_top", FillInfo::Kind::StackTop, true},
    {"multiprocessors", FillInfo::Kind::Multiprocessors, false},
    {"smid", FillInfo::Kind::Smid, false},
};

}  // namespace

size_t fill_width(FillInfo::Kind kind) {
  switch (kind) {
    case FillInfo::Kind::Smid:
    case FillInfo::Kind::U64:
    case FillInfo::Kind::SharedWindow:
    case FillInfo::Kind::GridId:
    case FillInfo::Kind::Bank2:
    case FillInfo::Kind::Bank3:
    case FillInfo::Kind::Bank4:
    case FillInfo::Kind::Textures:
    case FillInfo::Kind::Locks:
      return 8;
    default:
      return 4;
  }
}

namespace {

bool parse_fill(Fields &fields, LaunchInfo &out) {
  FillInfo fill;
  fields.number(fill.offset);
  std::string_view name = fields.word();
  for (const FillName &known : kFills) {
    if (name != known.name) continue;
    fill.kind = known.kind;
    if (known.has_value) fields.wrapping(fill.value);
    out.fills.push_back(fill);
    return fields.good();
  }
  return false;
}

}  // namespace

bool parse_manifest(const std::string &text, Manifest &out) {
  out = Manifest();
  bool first = true;
  bool whole = each_line(text, [&](std::string_view line) {
    if (first) {
      first = false;
      return line == "sassxlate-module 2";
    }
    Fields fields(line);
    std::string_view kind = fields.word();
    return parse_item(fields, kind, out);
  });
  if (!whole) return false;
  for (const RelocInfo &reloc : out.relocs) {
    if (reloc.section >= out.sections.size()) return false;
    if (!lies_in(out.sections[reloc.section], reloc.offset, reloc.size)) return false;
  }
  return out.error || out.arch > 0 || !out.made_key.empty();
}

bool parse_launch(const std::string &text, LaunchInfo &out, std::string &error) {
  out = LaunchInfo();
  bool whole = each_line(text, [&](std::string_view line) {
    Fields fields(line);
    std::string_view kind = fields.word();
    bool good = true;
    if (kind == "kernarg_size") fields.number(out.kernarg_size);
    else if (kind == "param_base") fields.number(out.param_base);
    else if (kind == "param_size") fields.number(out.param_size);
    else if (kind == "lds_static") fields.number(out.lds_static);
    else if (kind == "private_size") fields.number(out.private_size);
    else if (kind == "max_threads") fields.number(out.max_threads);
    else if (kind == "heap") out.heap = good = line == kind;
    else if (kind == "comes_apart") out.comes_apart = good = line == kind;
    else good = kind == "fill" && parse_fill(fields, out);
    if (good && fields.good()) return true;
    error = std::string(line);
    return false;
  });
  if (whole && (out.kernarg_size > (1u << 20) || out.param_base > out.kernarg_size ||
                out.param_size > out.kernarg_size - out.param_base)) {
    error = "the parameters lie outside the segment";
    return false;
  }
  // Only now: the size may be given again later.
  for (const FillInfo &fill : out.fills)
    if (whole && (fill.offset > out.kernarg_size || fill_width(fill.kind) > out.kernarg_size - fill.offset)) {
      error = "a fill lies outside the segment";
      return false;
    }
  return whole;
}

}  // namespace sx
