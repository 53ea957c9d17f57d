// Gets control before constructors run, for the objects that the program starts with and for those that dlopen
// brings later.
//
// The dynamic linker calls an empty function, _r_debug.r_brk, whenever the list of loaded objects has changed: after
// mapping, before constructors.  It is where debuggers put their breakpoint; we put a jump there.  That has to
// happen before the first constructor, and a preloaded library's own constructors may run after another library's.
// An indirect function's resolver runs earlier, while this library is relocated.  The resolver uses nothing that
// is relocated later: no call to another library, only system calls.
#include <cstring>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "preload.h"
#include "sanitizers.h"

namespace sx::preload {
namespace {

constexpr uintptr_t kPage = 4096;
constexpr size_t kFar = 14;  // jmp *0(%rip) and the address

SX_UNSANITIZED long system_call(long number, long a, long b, long c) {
  long result;
  asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
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
  if (_r_debug.r_state == r_debug::RT_CONSISTENT) scan_new_objects();
}

bool g_hooked;

SX_UNSANITIZED void install() {
  auto *at = reinterpret_cast<unsigned char *>(_r_debug.r_brk);
  if (!at || !is_empty_function(at)) return;
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

}  // namespace sx::preload

extern "C" {
static void nothing() {}

__attribute__((used)) SX_UNSANITIZED static void (*sx_resolve_early(void))() {
  sx::preload::install();
  return nothing;
}

__attribute__((visibility("hidden"), ifunc("sx_resolve_early"))) void sx_early();
}

// Only so that there is a relocation for the dynamic linker to resolve.
__attribute__((used)) static void (*volatile g_reference)() = sx_early;
