// Modules and kernels from the translation that the program or a library carries (common/carried.h).
#include "module.h"

#include "blake2b.h"
#include "carried.h"
#include "log.h"

#include <cstdlib>

namespace sx {

bool Module::read_carried_manifest() {
  std::string text;
  auto read = [&](const std::string &key) {
    return read_carried("module", key + ".txt", text) && parse_manifest(text, manifest_);
  };
  carried_ = read(key_);
  // Beside other libraries the device may be a newer one than that which the translation was made for.
  for (const std::string &made_for : carried_settings("cc")) {
    if (carried_ || !env_string("SASSXLATE_CC").empty()) break;
    const std::string other = key_for(atoi(made_for.c_str()));
    carried_ = read(other);
    if (carried_) key_ = other;
  }
  // PTX: the module that was made of it.
  const std::string made = carried_ ? manifest_.made_key : "";
  if (!made.empty()) {
    carried_ = read(made) && manifest_.made_key.empty();
    key_ = made;
  }
  return carried_;
}

std::string Module::key_for(int capability) const {
  Blake2b hash(16);
  hash.update(image_.data, image_.size);
  hash.update("\0", 1);
  hash.update(std::to_string(capability));
  if (!jit_.empty()) {
    hash.update("\0", 1);
    hash.update(jit_);
  }
  return hash.hex();
}

CUresult Kernel::read_carried_translation() {
  const std::string stem = owner->key() + "-" + info->key;
  std::string text, error;
  if (read_carried("kernel", stem + ".launch", text) && parse_launch(text, launch, error) &&
      read_carried("kernel", stem + ".hsaco", code_))
    return CUDA_SUCCESS;
  if (read_carried("kernel", stem + ".refused", text) && read_refusal(text)) return translation_;
  return refuse(CUDA_ERROR_NOT_SUPPORTED, "SX0790: " + info->name + std::string(kNotCarried + sizeof "SX0790" - 1));
}

}  // namespace sx
