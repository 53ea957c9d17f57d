// The libraries' parsers, with what the fuzzers hold them to: `parsers TARGET FILE...` prints a line a
// file, "taken" or "refused" (json: the text as quote() writes it), and then how far memory has grown, in KiB.
// Built twice, with SX_DRIVER and without: the libraries have structures of one name each.
// `parsers TARGET -runs=N -seed=N FILE...` runs random changes of the files, as fuzz/replay.cpp does.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/resource.h>

static int (*g_target)(const uint8_t *, size_t);
#include "fuzz/fuzz.h"
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return g_target(data, size); }

#ifdef SX_DRIVER
#define LLVMFuzzerTestOneInput fuzz_json
#include "fuzz/fuzz_json.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_manifest
#include "fuzz/fuzz_manifest.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_message
#include "fuzz/fuzz_message.cpp"
#undef LLVMFuzzerTestOneInput
#else
#define LLVMFuzzerTestOneInput fuzz_code_object
#include "fuzz/fuzz_code_object.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_elf
#include "fuzz/fuzz_elf.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_msgpack
#include "fuzz/fuzz_msgpack.cpp"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_signature
#include "fuzz/fuzz_signature.cpp"
#undef LLVMFuzzerTestOneInput
#endif
#define main replay
#include "fuzz/replay.cpp"
#undef main

namespace {

#ifdef SX_DRIVER
bool takes_manifest(const uint8_t *data, size_t size) {
  Manifest manifest;
  return parse_manifest(std::string(reinterpret_cast<const char *>(data), size), manifest);
}

bool takes_launch(const uint8_t *data, size_t size) {
  LaunchInfo launch;
  std::string error;
  return parse_launch(std::string(reinterpret_cast<const char *>(data), size), launch, error);
}

bool takes_message(const uint8_t *data, size_t size) {
  int pair[2];
  std::string text;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) abort();
  if (send(pair[0], data, size, MSG_NOSIGNAL) != static_cast<ssize_t>(size)) abort();
  shutdown(pair[0], SHUT_WR);
  bool taken = receive_message(pair[1], text);
  close(pair[0]);
  close(pair[1]);
  return taken;
}

bool quotes(const uint8_t *data, size_t size) {
  puts(json::quote(std::string_view(reinterpret_cast<const char *>(data), size)).c_str());
  json::Value value;
  return json::parse(std::string_view(reinterpret_cast<const char *>(data), size), value);
}

#else
bool takes_elf(const uint8_t *data, size_t size) {
  ElfFile elf;
  std::string why;
  return elf.parse(data, size, why);
}

bool takes_code_object(const uint8_t *data, size_t size) {
  std::unique_ptr<CodeObject> code;
  std::string why;
  return read_code_object(fuzz::at_end_of_memory(data, size), kTargets[0], code, why) == 0;
}

bool takes_msgpack(const uint8_t *data, size_t size) {
  msgpack::Value value;
  return msgpack::parse(data, size, value);
}

bool takes_signature(const uint8_t *data, size_t size) {
  sx::preload::Match match;
  bool near = false;
  bool found = sx::preload::find_by_signature(data, size, match, near);
  return found || near;  // an anchor was met: the block around it was looked at
}
#endif

struct Parser {
  const char *name;
  int (*fuzz)(const uint8_t *, size_t);
  bool (*takes)(const uint8_t *, size_t);
} const kParsers[] = {
#ifdef SX_DRIVER
    {"manifest", fuzz_manifest, takes_manifest},
    {"launch", fuzz_manifest, takes_launch},
    {"message", fuzz_message, takes_message},
    {"json", fuzz_json, quotes},
#else
    {"elf", fuzz_elf, takes_elf},
    {"code_object", fuzz_code_object, takes_code_object},
    {"msgpack", fuzz_msgpack, takes_msgpack},
    {"signature", fuzz_signature, takes_signature},
#endif
};

long peak() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

int main(int argc, char **argv) {
  const Parser *target = nullptr;
  for (const Parser &each : kParsers)
    if (argc > 1 && !strcmp(argv[1], each.name)) target = &each;
  if (!target) return 2;
  g_target = target->fuzz;
  if (argc > 2 && argv[2][0] == '-') return replay(argc - 1, argv + 1);
  std::vector<std::string> inputs;
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  long before = peak();
  for (const std::string &input : inputs) {
    // Of exactly its size, so that a read beyond it is seen.
    Bytes bytes;
    bytes.reserve(std::max<size_t>(input.size(), 1));
    bytes.assign(input.begin(), input.end());
    bool taken = target->takes(bytes.data(), bytes.size());
    g_target(bytes.data(), bytes.size());
    puts(taken ? "taken" : "refused");
  }
  printf("%ld\n", peak() - before);
  return 0;
}
