// Gets control before constructors run, for the objects that the program starts with and for those that dlopen
// brings later.
//
// The dynamic linker calls an empty function, _r_debug.r_brk, whenever the list of loaded objects has changed: after
// mapping, before constructors.  It is where debuggers put their breakpoint; we put a jump there.  Where a debugger
// was first, the byte is the debugger's to restore at any time: the linker's calls of the function come to us then,
// and we call the function.
// That has to happen before the first constructor, and a preloaded library's own constructors may run after another
// library's.
// An indirect function's resolver runs earlier, while this library is relocated.  The resolver uses nothing that
// is relocated later: no call to another library, only system calls.
#include <cstring>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "preload.h"
#include "sanitizers.h"

namespace sx::preload {
namespace {

constexpr uintptr_t kPage = 4096;
constexpr size_t kFar = 14;  // jmp *0(%rip) and the address
constexpr size_t kNear = 5;  // call or jmp, and the distance

SX_UNSANITIZED long system_call(long number, long a, long b, long c) {
  long result;
  asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}

// The dynamic linker's record.  A program that names _r_debug and is not position-independent has a copy of it, which is
// ours, too, and empty as long as the program is not relocated, and out of date after that; its dynamic section has the
// address of the original.
const r_debug *g_linker;

SX_UNSANITIZED const r_debug *record_of(const ElfW(Phdr) *segments, size_t count) {
  const ElfW(Phdr) *headers = nullptr, *dynamic = nullptr;
  for (size_t i = 0; i < count; ++i) {
    if (segments[i].p_type == PT_PHDR) headers = &segments[i];
    if (segments[i].p_type == PT_DYNAMIC) dynamic = &segments[i];
  }
  if (!headers || !dynamic) return nullptr;  // the dynamic linker itself has no header of the headers
  const uintptr_t bias = reinterpret_cast<uintptr_t>(segments) - headers->p_vaddr;
  const auto *entry = reinterpret_cast<const ElfW(Dyn) *>(bias + dynamic->p_vaddr);
  for (; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_DEBUG) return reinterpret_cast<const r_debug *>(entry->d_un.d_ptr);
  return nullptr;
}

// By the program's headers, whose address the kernel tells; null where the dynamic linker was started as the program.
SX_UNSANITIZED const r_debug *record_of_program() {
  ElfW(auxv_t) all[64];
  const long file = system_call(SYS_open, reinterpret_cast<long>("/proc/self/auxv"), O_RDONLY | O_CLOEXEC, 0);
  if (file < 0) return nullptr;
  const long size = system_call(SYS_read, file, reinterpret_cast<long>(all), sizeof all);
  system_call(SYS_close, file, 0, 0);
  const ElfW(Phdr) *segments = nullptr;
  size_t count = 0;
  for (long i = 0; i < size / static_cast<long>(sizeof all[0]); ++i) {
    if (all[i].a_type == AT_PHDR) segments = reinterpret_cast<const ElfW(Phdr) *>(all[i].a_un.a_val);
    if (all[i].a_type == AT_PHNUM) count = all[i].a_un.a_val;
  }
  return segments ? record_of(segments, count) : nullptr;
}

// Whether the function at `p` does nothing: [endbr64] [rep] ret.  It is aligned to 16, so the bytes up to the next
// multiple of 16 are its own.
SX_UNSANITIZED bool is_empty_function(const unsigned char *p) {
  if (reinterpret_cast<uintptr_t>(p) % 16) return false;
  size_t i = 0;
  if (p[0] == 0xf3 && p[1] == 0x0f && p[2] == 0x1e && p[3] == 0xfa) i = 4;
  if (p[i] == 0xf3) ++i;
  return p[i] == 0xc3;
}

SX_UNSANITIZED void on_change() {
#if defined(SX_ASAN)
  __asan_init();
#elif defined(SX_TSAN)
  __tsan_init();
#endif
  if (g_linker->r_state == r_debug::RT_CONSISTENT) scan_new_objects();
}

// What the linker's calls reach where its empty function has a breakpoint.
SX_UNSANITIZED void on_call() {
  on_change();
  reinterpret_cast<void (*)()>(g_linker->r_brk)();
}

// The linker's code, from its program headers; empty where they are not found.
struct Code {
  uintptr_t low = 0, high = 0;
};

SX_UNSANITIZED Code linker_code() {
  const auto *header = reinterpret_cast<const ElfW(Ehdr) *>(g_linker->r_ldbase);
  if (!header || header->e_ident[EI_MAG0] != ELFMAG0 || header->e_ident[EI_MAG1] != ELFMAG1 ||
      header->e_ident[EI_MAG2] != ELFMAG2 || header->e_ident[EI_MAG3] != ELFMAG3)
    return {};
  const auto *segments = reinterpret_cast<const ElfW(Phdr) *>(g_linker->r_ldbase + header->e_phoff);
  for (size_t i = 0; i < header->e_phnum; ++i) {
    const ElfW(Phdr) &s = segments[i];
    const uintptr_t low = g_linker->r_ldbase + s.p_vaddr, high = low + s.p_memsz;
    if (s.p_type == PT_LOAD && (s.p_flags & PF_X) && low <= g_linker->r_brk && g_linker->r_brk < high) return {low, high};
  }
  return {};
}

// Redirects the linker's near calls of its empty function, and its jumps there at a function's end, to on_call.
// Bytes inside another instruction that look the same are not to be expected: four of them would have to be the
// function's distance.
SX_UNSANITIZED bool redirect_calls() {
  const Code code = linker_code();
  const auto target = static_cast<int64_t>(reinterpret_cast<uintptr_t>(on_call));
  if (!code.low) return false;
  const auto page = static_cast<long>(code.low & ~(kPage - 1));
  const auto size = static_cast<long>((code.high + kPage - 1) & ~(kPage - 1)) - page;
  if (system_call(SYS_mprotect, page, size, PROT_READ | PROT_WRITE)) return false;
  bool any = false;
  for (uintptr_t p = code.low; p + kNear <= code.high; ++p) {
    auto *at = reinterpret_cast<volatile unsigned char *>(p);
    if (at[0] != 0xe8 && at[0] != 0xe9) continue;
    uint32_t distance = 0;
    for (unsigned i = 0; i < 4; ++i) distance |= static_cast<uint32_t>(at[1 + i]) << (8 * i);
    if (p + kNear + static_cast<uintptr_t>(static_cast<int32_t>(distance)) != g_linker->r_brk) continue;
    const int64_t ours = target - static_cast<int64_t>(p + kNear);
    if (ours != static_cast<int32_t>(ours)) break;  // libraries lie next to the linker, but need not
    for (unsigned i = 0; i < 4; ++i) at[1 + i] = static_cast<unsigned char>(static_cast<uint64_t>(ours) >> (8 * i));
    any = true;
  }
  return system_call(SYS_mprotect, page, size, PROT_READ | PROT_EXEC) == 0 && any;
}

bool g_hooked;

SX_UNSANITIZED void install(const r_debug *linker) {
  if (!linker || !linker->r_brk) return;
  g_linker = linker;
  auto *at = reinterpret_cast<unsigned char *>(g_linker->r_brk);
  if (!is_empty_function(at)) {
    g_hooked = redirect_calls();
    return;
  }
  unsigned char code[kFar] = {0xff, 0x25, 0, 0, 0, 0};
  void (*target)() = on_change;
  for (size_t i = 0; i < sizeof target; ++i)
    code[6 + i] = static_cast<unsigned char>(reinterpret_cast<uintptr_t>(target) >> (8 * i));
  long page = static_cast<long>(reinterpret_cast<uintptr_t>(at) & ~(kPage - 1));
  if (system_call(SYS_mprotect, page, kPage, PROT_READ | PROT_WRITE)) return;
  for (size_t i = 0; i < kFar; ++i) const_cast<volatile unsigned char *>(at)[i] = code[i];
  g_hooked = system_call(SYS_mprotect, page, kPage, PROT_READ | PROT_EXEC) == 0;
}

}  // namespace

bool hooked() { return g_hooked; }

void hook_late() {
  const r_debug *linker = nullptr;
  dl_iterate_phdr(
      [](dl_phdr_info *program, size_t, void *found) {
        *static_cast<const r_debug **>(found) = record_of(program->dlpi_phdr, program->dlpi_phnum);
        return 1;  // the program is the first
      },
      &linker);
  install(linker);
}

}  // namespace sx::preload

extern "C" {
static void nothing() {}

__attribute__((used)) SX_UNSANITIZED static void (*sx_resolve_early(void))() {
  using namespace sx::preload;
  install(_r_debug.r_brk ? &_r_debug : record_of_program());
  return nothing;
}

__attribute__((visibility("hidden"), ifunc("sx_resolve_early"))) void sx_early();
}

// Only so that there is a relocation for the dynamic linker to resolve.
__attribute__((used)) static void (*volatile g_reference)() = sx_early;
