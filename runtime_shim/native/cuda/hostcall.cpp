#include "hostcall.h"
#include "log.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>

namespace sx {
namespace {

// As in lowering/abi/hostcalls.py and lowering/rules/control/hostcall.py.
enum Function : uint32_t { kNone, kPrintf, kAssert, kMalloc, kFree, kFunctions };
constexpr const char *kNames[] = {"", "vprintf", "__assertfail", "malloc", "free"};
constexpr uint32_t kArguments = 256, kHead = 64, kRecords = 1 << 17;
// Blocks begin so that their bytes, after a header of 16, are 32-byte aligned, as on an H200.
constexpr size_t kHeapStart = 528, kFreeAt = 32, kLimitAt = 40, kMaxText = 65536;
// As measured on an H200: limits are multiples of 64 KiB, and 4 MiB at least.
constexpr size_t kLimitStep = 64u << 10, kLimitLeast = 4u << 20;
constexpr size_t kReserveMost = (64ull << 30) - 16;  // blocks are counted in 16 bytes, by 32-bit numbers

struct Record {
  uint32_t kind, line;
  uint64_t text, file, function;
  uint32_t block[3], thread[3];
  uint8_t unused[8];
  uint8_t arguments[kArguments];
};
static_assert(sizeof(Record) == 64 + kArguments, "the layout of rules/hostcall.py");

struct Queue {
  uint32_t function, records, written, read;
  uint8_t unused[kHead - 16];
  Record record[1];
};

struct Blocks {
  unsigned generation = 0;  // the device's when they were made
  Queue *queue[kFunctions] = {};  // one per function that has one, each preceded by its number
  char *heap = nullptr;
};

std::mutex g_mutex;

Blocks &blocks_of(Device &device) {
  static auto *all = new std::map<int, Blocks>;
  Blocks &blocks = (*all)[device.ordinal];
  if (blocks.generation != device.generation) {
    // A reset has freed the device's memory, including the queues'.
    blocks = Blocks();
    blocks.generation = device.generation;
  }
  return blocks;
}

Queue *make_queue(uint32_t function) {
  void *memory = nullptr;
  size_t size = kHead + sizeof(Record) * size_t{kRecords};
  if (!hip().hipHostMalloc || hip().hipHostMalloc(&memory, size, 0) != hipSuccess) return nullptr;
  if (!hip().emulated) memset(memory, 0, size);
  auto *queue = static_cast<Queue *>(memory);
  memset(queue, 0, kHead);
  queue->function = function;
  queue->records = kRecords;
  return queue;
}

// malloc and free work on one heap: the address of free is that of the second number in it.  The limit bounds what a
// program holds; the reserve, from which its blocks are taken, is larger, because a block is a power of two (up to twice
// what it is charged), and free blocks of one size serve no other.
char *make_heap(size_t limit) {
  void *memory = nullptr;
  size_t size = 0;
  for (size_t times : {4, 2, 1}) {
    size = std::min(limit * times + kHeapStart, kReserveMost);
    if (hip().hipMalloc(&memory, size) == hipSuccess) break;
    hip().hipGetLastError();
    memory = nullptr;
  }
  if (!memory) return nullptr;
  uint64_t head[kHeapStart / 8] = {};
  head[0] = kMalloc;
  head[kFreeAt / 8] = kFree;
  head[1] = kHeapStart;
  head[2] = size;
  head[kLimitAt / 8] = limit;
  if (hip().hipMemcpy(memory, head, sizeof head, hipMemcpyHostToDevice) == hipSuccess)
    return static_cast<char *>(memory);
  hip().hipFree(memory);
  return nullptr;
}

// A string in device memory: it may end with its allocation, so smaller pieces are tried where one is refused.
std::string read_text(uint64_t address) {
  std::string text;
  size_t piece = 256;
  char buffer[256];
  while (address && text.size() < kMaxText) {
    if (hip().hipMemcpy(buffer, to_pointer(address + text.size()), piece, hipMemcpyDeviceToHost) != hipSuccess) {
      hip().hipGetLastError();
      if (piece == 1) {
        if (!text.empty()) return text;
        static std::atomic<bool> said{false};
        if (!said.exchange(true))
          log_line("SX0771: a kernel prints or asserts with a string at 0x%llx, which the host cannot read (shared or local "
                   "memory, or no memory); \"(invalid)\" is printed instead, here and for later ones", static_cast<unsigned long long>(address));
        return "(invalid)";
      }
      piece /= 2;
      continue;
    }
    size_t length = strnlen(buffer, piece);
    text.append(buffer, length);
    if (length < piece) return text;
  }
  return address ? text : "(null)";
}

// The arguments as the kernel packed them: each at a multiple of its size.
class Arguments {
 public:
  explicit Arguments(const Record &record) : record_(record) {}

  template <typename T>
  T next() {
    at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value{};
    if (at_ + sizeof(T) <= kArguments) memcpy(&value, record_.arguments + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

 private:
  const Record &record_;
  size_t at_ = 0;
};

template <typename... T>
void append(std::string &out, const std::string &format, T... value) {
  char small[512];
  int n = snprintf(small, sizeof small, format.c_str(), value...);
  if (n < 0) return;
  if (static_cast<size_t>(n) < sizeof small) {
    out.append(small, static_cast<size_t>(n));
    return;
  }
  std::string large(static_cast<size_t>(n) + 1, '\0');
  snprintf(large.data(), large.size(), format.c_str(), value...);
  out.append(large.data(), static_cast<size_t>(n));
}

// One conversion; `spec` is all of it but the length and the letter.  False for an invalid letter.
bool convert(std::string &out, std::string spec, bool wide, char letter, Arguments &arguments) {
  switch (letter) {
    case 'd': case 'i': case 'u': case 'o': case 'x': case 'X':
      spec += wide ? "ll" : "";
      spec += letter;
      if (wide) append(out, spec, arguments.next<unsigned long long>());
      else append(out, spec, arguments.next<unsigned>());
      return true;
    case 'c':
      append(out, spec + 'c', static_cast<int>(arguments.next<uint32_t>()));
      return true;
    case 'e': case 'E': case 'f': case 'F': case 'g': case 'G': case 'a': case 'A':
      append(out, spec + letter, arguments.next<double>());
      return true;
    case 'p':
      append(out, spec + 'p', to_pointer(arguments.next<uint64_t>()));
      return true;
    case 's':
      append(out, spec + 's', read_text(arguments.next<uint64_t>()).c_str());
      return true;
    default: return false;
  }
}

std::string formatted(const std::string &format, const Record &record) {
  Arguments arguments(record);
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    size_t begin = i++;
    if (i < format.size() && format[i] == '%') {
      out += '%';
      continue;
    }
    std::string spec = "%";
    // As measured on an H200: a precision of '*' and the lengths z, t, j and L are not known to its printer.
    bool known = true;
    while (i < format.size() && strchr("-+ #0123456789.*", format[i])) {
      if (format[i] == '*' && format[i - 1] == '.') known = false;
      else if (format[i] == '*') spec += std::to_string(static_cast<int>(arguments.next<uint32_t>()));
      else spec += format[i];
      ++i;
    }
    bool wide = false;
    unsigned short_ = 0;
    while (i < format.size() && strchr("hljztL", format[i])) {
      if (format[i] == 'h') ++short_;
      else wide = true;
      if (strchr("ztjL", format[i])) known = false;
      ++i;
    }
    if (short_) spec += short_ > 1 ? "hh" : "h";
    if (i >= format.size() || !known || !convert(out, spec, wide, format[i], arguments)) {
      // Not a conversion: printed unchanged.
      if (i >= format.size()) i = format.size() - 1;
      out.append(format, begin, i - begin + 1);
    }
  }
  return out;
}

// What the queue holds, in order; true if a record is of an assertion.
bool print_queue(Queue &queue) {
  bool failed = false;
  std::map<uint64_t, std::string> texts;
  auto text_at = [&](uint64_t address) -> const std::string & {
    auto found = texts.find(address);
    if (found == texts.end()) found = texts.emplace(address, read_text(address)).first;
    return found->second;
  };
  uint32_t read = queue.read;
  uint32_t written = __atomic_load_n(&queue.written, __ATOMIC_ACQUIRE);
  for (; read != written; ++read) {
    Record &record = queue.record[read % kRecords];
    uint32_t kind = __atomic_load_n(&record.kind, __ATOMIC_ACQUIRE);
    if (kind == kNone) break;  // of a kernel that still runs, or lost: the queue was full
    if (kind == kPrintf) {
      std::string text = formatted(text_at(record.text), record);
      fwrite(text.data(), 1, text.size(), stdout);
    } else {
      failed = true;
      const uint32_t *b = record.block, *t = record.thread;
      fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
              text_at(record.file).c_str(), record.line, text_at(record.function).c_str(), b[0], b[1], b[2], t[0],
              t[1], t[2], text_at(record.text).c_str());
    }
    __atomic_store_n(&record.kind, uint32_t{kNone}, __ATOMIC_RELAXED);
    __atomic_store_n(&queue.read, read + 1, __ATOMIC_RELEASE);
  }
  // Records beyond a full queue were never written: once there is no writer, both ends meet again.
  if (read != written && written - read >= kRecords) __atomic_store_n(&queue.read, written, __ATOMIC_RELEASE);
  return failed;
}

}  // namespace

uint64_t host_function(Device &device, const std::string &name, uint64_t unknown) {
  uint32_t function = kNone;
  for (uint32_t i : {kPrintf, kAssert})
    if (name == kNames[i]) function = i;
  if (function == kNone) return unknown;
  std::lock_guard<std::mutex> guard(g_mutex);
  Blocks &blocks = blocks_of(device);
  if (!blocks.queue[function]) blocks.queue[function] = make_queue(function);
  return blocks.queue[function] ? reinterpret_cast<uint64_t>(blocks.queue[function]) : unknown;
}

bool is_heap_function(const std::string &name) { return name == kNames[kMalloc] || name == kNames[kFree]; }

CUresult use_heap(Device &device, HeapAddresses &out) {
  std::lock_guard<std::mutex> guard(g_mutex);
  Blocks &blocks = blocks_of(device);
  if (!blocks.heap) blocks.heap = make_heap(current_context()->limits[CU_LIMIT_MALLOC_HEAP_SIZE]);
  if (!blocks.heap) return CUDA_ERROR_OUT_OF_MEMORY;
  out.malloc = reinterpret_cast<uint64_t>(blocks.heap);
  out.free = out.malloc + kFreeAt;
  return CUDA_SUCCESS;
}

bool heap_in_use(Device &device) {
  std::lock_guard<std::mutex> guard(g_mutex);
  return blocks_of(device).heap;
}

size_t heap_limit(const Device &device, size_t asked) {
  // No more than what the blocks' powers of two leave of the device's memory, and of the reserve.
  size_t most = std::min(device.memory, kReserveMost) / 2 / kLimitStep * kLimitStep;
  size_t limit = std::min(std::max(asked, kLimitLeast), std::max(most, kLimitLeast));
  return (limit + kLimitStep - 1) / kLimitStep * kLimitStep;
}

CUresult flush(Device &device, CUresult result) {
  std::lock_guard<std::mutex> guard(g_mutex);
  Blocks &blocks = blocks_of(device);
  if (blocks.queue[kPrintf]) print_queue(*blocks.queue[kPrintf]);
  if (blocks.queue[kAssert] && print_queue(*blocks.queue[kAssert])) return CUDA_ERROR_ASSERT;
  return result;
}

}  // namespace sx
