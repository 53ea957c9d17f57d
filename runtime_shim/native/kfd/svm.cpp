#include "svm.h"

#include <algorithm>

namespace sx::kfd {

// Makes `at` the beginning of a part where it is inside of one.
void SvmRanges::split(uint64_t at) {
  auto next = parts_.upper_bound(at);
  if (next == parts_.begin()) return;
  auto &[begin, part] = *std::prev(next);
  if (begin == at || part.end <= at) return;
  Part tail = part;
  part.end = at;
  bool read_only = part.attributes.flags & kSvmReadOnly;
  part.probes = std::make_shared<Probes>(begin, at - begin, read_only);
  tail.probes = std::make_shared<Probes>(at, tail.end - at, read_only);
  parts_[at] = tail;
}

void SvmRanges::change(Attributes &attributes, const SvmArgs &args) {
  for (uint32_t i = 0; i < args.count; ++i) {
    uint32_t value = args.entries[i].value;
    switch (args.entries[i].type) {
      case kSvmPreferred: attributes.preferred = value; break;
      case kSvmPrefetch: attributes.prefetch = value; break;
      case kSvmAccess:
      case kSvmAccessInPlace:
      case kSvmNoAccess:
        if (value == kGpuId) attributes.access = args.entries[i].type;
        break;
      case kSvmSetFlags: attributes.flags |= value; break;
      case kSvmClearFlags: attributes.flags &= ~value; break;
      case kSvmGranularity: attributes.granularity = value & 0x3f; break;
      default: break;
    }
  }
}

void SvmRanges::set(const SvmArgs &args) {
  uint64_t begin = args.start, end = args.start + args.size;
  split(begin);
  split(end);
  for (uint64_t at = begin; at < end;) {
    auto next = parts_.lower_bound(at);
    if (next == parts_.end() || next->first > at) {
      uint64_t until = next == parts_.end() ? end : std::min(end, next->first);
      Part fresh;
      fresh.end = until;
      next = parts_.emplace(at, fresh).first;
    }
    Part &part = next->second;
    change(part.attributes, args);
    part.probes = std::make_shared<Probes>(next->first, part.end - next->first, part.attributes.flags & kSvmReadOnly);
    at = part.end;
  }
}

// What all parts of the range have in common, as the driver answers.
void SvmRanges::get(SvmArgs &args) const {
  Attributes common;
  uint32_t all = 0xffffffff, any = 0, access = kSvmAccess;
  bool first = true;
  uint64_t at = args.start, end = args.start + args.size;
  while (at < end) {
    Attributes here;
    auto next = parts_.upper_bound(at);
    uint64_t until = next == parts_.end() ? end : std::min(end, next->first);
    if (next != parts_.begin() && std::prev(next)->second.end > at) {
      here = std::prev(next)->second.attributes;
      until = std::min(end, std::prev(next)->second.end);
    }
    if (first) common = here;
    if (here.preferred != common.preferred) common.preferred = 0xffffffff;
    if (here.prefetch != common.prefetch) common.prefetch = 0xffffffff;
    common.granularity = std::min(common.granularity, here.granularity);
    all &= here.flags;
    any |= here.flags;
    access = std::max(access, here.access);  // in the order of what is allowed less
    first = false;
    at = until;
  }
  for (uint32_t i = 0; i < args.count; ++i) {
    auto &entry = args.entries[i];
    switch (entry.type) {
      case kSvmPreferred: entry.value = common.preferred; break;
      case kSvmPrefetch: entry.value = common.prefetch; break;
      case kSvmAccess: entry.type = entry.value == kGpuId ? access : uint32_t{kSvmNoAccess}; break;
      case kSvmSetFlags: entry.value = all; break;
      case kSvmClearFlags: entry.value = ~any; break;
      case kSvmGranularity: entry.value = common.granularity; break;
      default: break;
    }
  }
}

bool SvmRanges::find(uint64_t address, Range &out) const {
  auto next = parts_.upper_bound(address);
  if (next == parts_.begin()) return false;
  const auto &[begin, part] = *std::prev(next);
  if (address >= part.end || part.attributes.access == kSvmNoAccess) return false;
  out = Range();
  out.begin = begin;
  out.end = part.end;
  out.probes = part.probes;
  return true;
}

void SvmRanges::list(std::vector<CardRange> &to) const {
  for (const auto &[begin, part] : parts_) {
    bool read_only = part.attributes.flags & kSvmReadOnly;
    if (part.attributes.access != kSvmNoAccess) to.push_back({begin, part.end, 0, read_only, true, true});
  }
}

}  // namespace sx::kfd
