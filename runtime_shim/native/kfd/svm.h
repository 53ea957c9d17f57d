// Host memory that the card reaches at its own address, and what the runtime has said of it (AMDKFD_IOC_SVM).
#pragma once
#include "../hip/device_memory.h"
#include "card.h"
#include "kfd_abi.h"

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace sx::kfd {

class SvmRanges {
 public:
  void set(const SvmArgs &args);
  void get(SvmArgs &args) const;
  // The range around an address that the card may access.
  bool find(uint64_t address, Range &out) const;
  // Adds those that the card may access.
  void list(std::vector<CardRange> &to) const;

 private:
  struct Attributes {
    uint32_t preferred = 0xffffffff, prefetch = 0xffffffff;  // undefined
    uint32_t access = kSvmNoAccess, flags = 0, granularity = 9;
  };
  struct Part {
    uint64_t end = 0;
    Attributes attributes;
    std::shared_ptr<Probes> probes;
  };
  void split(uint64_t at);
  static void change(Attributes &attributes, const SvmArgs &args);

  std::map<uint64_t, Part> parts_;
};

}  // namespace sx::kfd
