#include "code_object.h"

#include "hip.h"
#include "msgpack.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace sx {
namespace {

// Of the calling thread: the main thread's memory is gone once it has ended by pthread_exit.
pid_t thread_id() { return static_cast<pid_t>(syscall(SYS_gettid)); }

constexpr uint16_t kMachineAmdgpu = 224;
constexpr uint8_t kOsAbiHsa = 64;
constexpr uint32_t kFlagMachineMask = 0xff;
constexpr uint32_t kNoteMetadata = 32;
constexpr uint32_t kNoteSource = 0x5358;  // of the owner SASSXLATE
constexpr uint64_t kMaxImage = 1ull << 30;
constexpr uint16_t kPropertyWave32 = 1u << 10;
constexpr uint16_t kPropertyDynamicStack = 1u << 11;
// Enable bits of user SGPRs that gfx11 has none of: private segment buffer and flat scratch init.
constexpr uint16_t kPropertyNotGfx11 = 1u << 0 | 1u << 5;

// Copies from this process's own memory through the kernel, which answers EFAULT where we would crash.
bool read_memory(uint64_t address, void *out, size_t size) {
  char *to = static_cast<char *>(out);
  while (size) {
    iovec local = {to, size}, remote = {reinterpret_cast<void *>(address), size};
    ssize_t n = process_vm_readv(thread_id(), &local, 1, &remote, 1, 0);
    if (n <= 0 && errno != EFAULT) {  // the call is not allowed here: the slow way
      int fd = open("/proc/thread-self/mem", O_RDONLY | O_CLOEXEC);
      if (fd < 0) return false;
      n = pread(fd, to, size, static_cast<off_t>(address));
      close(fd);
    }
    if (n <= 0) return false;
    to += n;
    address += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
  return true;
}

uint64_t u64_at(const std::vector<uint8_t> &bytes, size_t at) {
  uint64_t value = 0;
  memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// The target's entry of an uncompressed clang offload bundle: magic, u64 count, then per entry
// u64 offset, u64 size, u64 length of the name, name.
int bundle_entry(uint64_t address, const Target &target, uint64_t &entry, std::string &why) {
  std::vector<uint8_t> head(32);
  if (!read_memory(address, head.data(), head.size())) return hipErrorInvalidImage;
  uint64_t count = u64_at(head, 24), at = address + 32;
  for (uint64_t i = 0; i < count && i < 256; ++i) {
    std::vector<uint8_t> fields(24);
    if (!read_memory(at, fields.data(), fields.size())) break;
    uint64_t offset = u64_at(fields, 0), length = u64_at(fields, 16);
    std::string name(std::min<uint64_t>(length, 256), 0);
    if (length > 256 || !read_memory(at + 24, name.data(), length)) break;
    if (name.find("amdgcn") != std::string::npos && (name + ":").find("-" + std::string(target.name) + ":") != std::string::npos) {
      entry = address + offset;
      return 0;
    }
    at += 24 + length;
  }
  why = "the offload bundle has no code for " + std::string(target.name);
  return hipErrorNoBinaryForGpu;
}

int copy_image(const void *image, const Target &target, std::vector<uint8_t> &bytes, std::string &why) {
  static const char bundle[] = "__CLANG_OFFLOAD_BUNDLE__";
  uint64_t address = reinterpret_cast<uint64_t>(image);
  bytes.resize(24);
  why = "the image cannot be read";
  if (!read_memory(address, bytes.data(), bytes.size())) return hipErrorInvalidImage;
  if (memcmp(bytes.data(), bundle, 24) == 0) {
    if (int error = bundle_entry(address, target, address, why)) return error;
  }
  bytes.resize(sizeof(Elf64_Ehdr));
  if (!read_memory(address, bytes.data(), bytes.size())) return hipErrorInvalidImage;
  for (int pass = 0; pass < 3; ++pass) {
    uint64_t extent = ElfFile::header_extent(bytes.data(), bytes.size());
    if (extent == 0) {
      why = "not a 64-bit little-endian ELF file";
      return hipErrorInvalidImage;
    }
    if (extent <= bytes.size()) break;
    if (extent > kMaxImage) {
      why = "its headers give an impossible size";
      return hipErrorInvalidImage;
    }
    // Page by page at first, so that a wrong size costs no large allocation.
    for (uint64_t done = bytes.size(); done < extent;) {
      uint64_t part = std::min<uint64_t>(extent - done, done < 65536 ? 65536 : done);
      bytes.resize(done + part);
      if (!read_memory(address + done, bytes.data() + done, part)) return hipErrorInvalidImage;
      done += part;
    }
  }
  return 0;
}

bool string_member(const msgpack::Value &map, const char *key, std::string &out) {
  const msgpack::Value *value = map.find(key);
  if (!value || value->kind != msgpack::Value::Kind::String) return false;
  out = value->bytes;
  return true;
}

uint64_t number_member(const msgpack::Value &map, const char *key, uint64_t fallback) {
  const msgpack::Value *value = map.find(key);
  uint64_t number;
  return value && value->number(number) ? number : fallback;
}

bool read_args(const msgpack::Value &map, KernelInfo &kernel, std::string &why) {
  const msgpack::Value *args = map.find(".args");
  if (!args) return true;
  if (args->kind != msgpack::Value::Kind::Array) return false;
  for (const msgpack::Value &entry : args->array) {
    KernelArg arg = {};
    if (!string_member(entry, ".value_kind", arg.kind)) return false;
    arg.offset = number_member(entry, ".offset", UINT64_MAX);
    arg.size = number_member(entry, ".size", UINT64_MAX);
    if (arg.size > kernel.kernarg_size || arg.offset > kernel.kernarg_size - arg.size) {
      why = kernel.name + ": an argument lies outside the kernarg segment";
      return false;
    }
    kernel.args.push_back(std::move(arg));
  }
  return true;
}

int read_descriptor(const ElfFile &elf, const std::string &symbol, KernelInfo &kernel, std::string &why) {
  const ElfSymbol *kd = elf.symbol(symbol);
  const uint8_t *bytes = kd ? elf.at_vaddr(kd->value, 64) : nullptr;
  if (!bytes) {
    why = kernel.name + ": no kernel descriptor " + symbol;
    return hipErrorInvalidImage;
  }
  auto word = [bytes](unsigned offset) {
    uint32_t value;
    memcpy(&value, bytes + offset, sizeof value);
    return value;
  };
  int64_t entry;
  memcpy(&entry, bytes + 16, sizeof entry);
  kernel.group_size = word(0);
  kernel.private_size = word(4);
  kernel.kernarg_size = word(8);
  kernel.descriptor_vaddr = kd->value;
  kernel.entry_vaddr = kd->value + static_cast<uint64_t>(entry);
  kernel.rsrc1 = word(48);
  kernel.rsrc2 = word(52);
  kernel.properties = static_cast<uint16_t>(word(56));
  kernel.dynamic_stack = kernel.properties & kPropertyDynamicStack;
  if (kernel.entry_vaddr & 255 || !elf.at_vaddr(kernel.entry_vaddr, 4)) {
    why = kernel.name + ": its entry lies outside the code";
    return hipErrorInvalidImage;
  }
  if (kernel.group_size > (1u << 20) || kernel.private_size > (64u << 20) || kernel.kernarg_size > (1u << 20)) {
    why = kernel.name + ": a segment of impossible size";
    return hipErrorInvalidImage;
  }
  if (!(kernel.properties & kPropertyWave32) || kernel.properties & kPropertyNotGfx11) {
    why = kernel.name + ": only wave32 kernels of RDNA3 can run";
    return hipErrorNoBinaryForGpu;
  }
  return 0;
}

int read_kernel(const CodeObject &code, const msgpack::Value &map, KernelInfo &kernel, std::string &why) {
  std::string symbol;
  why = "malformed metadata of a kernel";
  if (!string_member(map, ".name", kernel.name) || !string_member(map, ".symbol", symbol))
    return hipErrorInvalidImage;
  if (int error = read_descriptor(code.elf, symbol, kernel, why)) return error;
  uint64_t declared = number_member(map, ".kernarg_segment_size", 0);
  if (declared > (1u << 20)) return hipErrorInvalidImage;
  kernel.kernarg_size = std::max(kernel.kernarg_size, static_cast<uint32_t>(declared));
  kernel.vgprs = static_cast<uint32_t>(number_member(map, ".vgpr_count", (uint64_t{kernel.rsrc1 & 63} + 1) * 8));
  kernel.sgprs = static_cast<uint32_t>(number_member(map, ".sgpr_count", 0));
  uint64_t limit = number_member(map, ".max_flat_workgroup_size", 1024);
  kernel.max_flat_workgroup_size = static_cast<uint32_t>(std::min<uint64_t>(limit, 1024));
  // What a compiler of AMD's made names its language, and relies on the hardware's alignment.
  kernel.unaligned = map.find(".language") != nullptr;
  return read_args(map, kernel, why) ? 0 : hipErrorInvalidImage;
}

// The note that the translator writes (lowering/codeobject/source_map.py); a malformed one is ignored.
void read_source(CodeObject &code) {
  const uint8_t *desc;
  size_t size;
  if (!code.elf.note("SASSXLATE", kNoteSource, desc, size)) return;
  std::string text(reinterpret_cast<const char *>(desc), size);
  KernelInfo *kernel = nullptr;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    size_t tab = line.find('\t');
    if (line.compare(0, 7, "kernel ") == 0) {
      kernel = nullptr;
      for (KernelInfo &each : code.kernels)
        if (each.name == line.substr(7)) kernel = &each;
    } else if (kernel && line == "unaligned") {
      kernel->unaligned = true;
    } else if (kernel && tab != std::string::npos) {
      kernel->source.emplace_back(static_cast<uint32_t>(strtoul(line.c_str(), nullptr, 16)), line.substr(tab + 1));
    }
  }
}

int read_note(CodeObject &code, const uint8_t *desc, size_t size, Kernels kernels_wanted, std::string &why) {
  msgpack::Value root;
  why = "malformed metadata";
  if (!msgpack::parse(desc, size, root)) return hipErrorInvalidImage;
  const msgpack::Value *version = root.find("amdhsa.version");
  uint64_t major;
  if (!version || version->array.size() != 2 || !version->array[0].number(major)) return hipErrorInvalidImage;
  if (major != 1) {
    why = "metadata of an unknown version";
    return hipErrorNoBinaryForGpu;
  }
  const msgpack::Value *kernels = root.find("amdhsa.kernels");
  if (!kernels || kernels->kind != msgpack::Value::Kind::Array) return hipErrorInvalidImage;
  for (const msgpack::Value &map : kernels->array) {
    KernelInfo kernel;
    int error = read_kernel(code, map, kernel, why);
    if (error == hipErrorNoBinaryForGpu && kernels_wanted == Kernels::Some) kernel.unusable = why;
    else if (error) return error;
    code.kernels.push_back(std::move(kernel));
  }
  return 0;
}

// A file that was linked of assembled kernels, as rocBLAS's, has a note for each of them.
int read_metadata(CodeObject &code, Kernels kernels_wanted, std::string &why) {
  const auto notes = code.elf.notes("AMDGPU", kNoteMetadata);
  why = "no AMDGPU metadata note";
  if (notes.empty()) return hipErrorInvalidImage;
  for (const auto &[desc, size] : notes)
    if (int error = read_note(code, desc, size, kernels_wanted, why)) return error;
  read_source(code);
  return 0;
}

}  // namespace

std::string KernelInfo::sass_at(uint32_t pc) const {
  std::string found;
  for (const auto &[offset, text] : source) {
    if (offset > pc) break;
    found = text;
  }
  return found;
}

int read_code_object(const void *image, const Target &target, std::unique_ptr<CodeObject> &out, std::string &why,
                     Kernels kernels) {
  auto code = std::make_unique<CodeObject>();
  if (int error = copy_image(image, target, code->bytes, why)) return error;
  if (!code->elf.parse(code->bytes.data(), code->bytes.size(), why)) return hipErrorInvalidImage;
  const ElfFile &elf = code->elf;
  if (elf.machine != kMachineAmdgpu || elf.os_abi != kOsAbiHsa ||
      (elf.flags & kFlagMachineMask) != target.machine) {
    why = "not a code object for " + std::string(target.name);
    return hipErrorNoBinaryForGpu;
  }
  if (elf.abi_version < 2 || elf.abi_version > 4) {
    why = "a code object of an unknown version";
    return hipErrorNoBinaryForGpu;
  }
  if (int error = read_metadata(*code, kernels, why)) return error;
  out = std::move(code);
  return 0;
}

}  // namespace sx
