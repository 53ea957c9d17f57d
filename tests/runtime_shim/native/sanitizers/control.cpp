// What each sanitizer has to see, or its silence means nothing: `control asan|ubsan|tsan`.
#include <climits>
#include <cstdio>
#include <cstring>
#include <thread>

int g_shared;

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  if (!strcmp(argv[1], "asan")) {
    volatile char *small = new char[8];
    printf("%d\n", small[8 + argc - 2]);
  } else if (!strcmp(argv[1], "ubsan")) {
    volatile int most = INT_MAX;
    printf("%d\n", most + argc);
  } else {
    std::thread other([] { ++g_shared; });
    ++g_shared;
    other.join();
  }
  return 0;
}
