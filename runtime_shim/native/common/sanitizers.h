// Which sanitizer this build is under (CMakePresets.json): SX_ASAN, SX_TSAN or neither.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SX_ASAN 1
#elif __has_feature(thread_sanitizer)
#define SX_TSAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SX_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define SX_TSAN 1
#endif

// Not instrumented: for what runs before the sanitizer does.
#define SX_UNSANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

// A constructor of theirs calls it; it may be called before.
#if defined(SX_ASAN)
extern "C" void __asan_init();
#elif defined(SX_TSAN)
extern "C" {
void __tsan_init();
void __tsan_acquire(void *address);
void __tsan_release(void *address);
}
#endif
