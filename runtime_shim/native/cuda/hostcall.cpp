#include "hostcall.h"
#include "log.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>

namespace sx {
namespace {

// As in lowering/abi/hostcalls.py, lowering/rules/control/hostcall.py (the heap) and printing.py (the queues).
enum Function : uint32_t { kNone, kPrintf, kAssert, kMalloc, kFree, kFunctions };
constexpr const char *kNames[] = {"", "vprintf", "__assertfail", "malloc", "free"};
constexpr uint32_t kArguments = 256, kHead = 64, kUnit = 64;
// A ring's least bytes: half a million lines, some twice as many as an H200 keeps by default.
constexpr size_t kRingLeast = 64u << 20, kRingMost = 1u << 30;
// Blocks begin so that their bytes, after a header of 16, are 32-byte aligned, as on an H200.
constexpr size_t kHeapStart = 528, kFreeAt = 32, kLimitAt = 40, kMaxText = 65536;
// As measured on an H200: limits are multiples of 64 KiB, and 4 MiB at least.
constexpr size_t kLimitStep = 64u << 10, kLimitLeast = 4u << 20;
constexpr size_t kReserveMost = (64ull << 30) - 16;  // blocks are counted in 16 bytes, by 32-bit numbers

struct Assertion {
  uint32_t kind, line;
  uint64_t text, file, function;
  uint32_t block[3], thread[3];
  uint8_t unused[8];
};
static_assert(sizeof(Assertion) == kUnit, "the layout of printing.py");

struct Queue {
  uint32_t function, lost;
  uint64_t written, end;  // `end` is what has been read and the ring's bytes
  uint8_t *ring;
  uint64_t mask;
  uint8_t unused[kHead - 40];

  uint64_t bytes() const { return mask + 1; }
  uint8_t *at(uint64_t place) { return ring + (place & mask); }
};
static_assert(sizeof(Queue) == kHead, "the layout of printing.py");

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

// The ring's bytes for cudaLimitPrintfFifoSize: our records are larger than NVIDIA's, by less than four times.
size_t ring_bytes(size_t limit) {
  size_t bytes = kRingLeast;
  while (bytes < kRingMost && bytes < 4 * limit) bytes *= 2;
  return bytes;
}

Queue *make_queue(uint32_t function, size_t bytes) {
  void *memory = nullptr;
  if (!hip().hipHostMalloc || hip().hipHostMalloc(&memory, kHead + bytes, 0) != hipSuccess) return nullptr;
  if (!hip().emulated) memset(memory, 0, kHead + bytes);
  auto *queue = static_cast<Queue *>(memory);
  memset(queue, 0, kHead);
  queue->function = function;
  queue->ring = static_cast<uint8_t *>(memory) + kHead;
  queue->mask = bytes - 1;
  queue->end = bytes;
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
          log_line("SX0771: a kernel asserts with a string at 0x%llx, which the host cannot read (shared or local memory, or no "
                   "memory); \"(invalid)\" is printed instead, here and for later ones", static_cast<unsigned long long>(address));
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

// A record of printf: the arguments as the kernel packed them, each at a multiple of its size, and the texts that the
// kernel copied: the format, with each string that is not null after its conversion.
class Printed {
 public:
  // `place` is the record's, and `most` what has been written from there on; false if it is not one.
  bool read(Queue &queue, uint64_t place, uint64_t most) {
    uint32_t packed, size;
    memcpy(&packed, queue.at(place) + 4, 4);
    memcpy(&size, queue.at(place) + 8, 4);
    if (size % kUnit || size < kUnit || size > most || packed > std::min(kArguments, size - kUnit)) return false;
    bytes_.clear();
    for (uint32_t i = kUnit; i < size; i += kUnit) bytes_.append(reinterpret_cast<char *>(queue.at(place + i)), kUnit);
    packed_ = packed;
    text_ = packed;
    at_ = 0;
    size_ = size;
    return true;
  }
  uint32_t size() const { return size_; }

  // The format's characters; 0 at its end, again and again.
  char character() {
    if (text_ >= bytes_.size() || !bytes_[text_]) return 0;
    return bytes_[text_++];
  }
  char ahead() const { return text_ < bytes_.size() ? bytes_[text_] : 0; }
  std::string text() {
    size_t end = std::min(bytes_.find('\0', text_), bytes_.size());
    std::string found = bytes_.substr(text_, end - text_);
    text_ = std::min(end + 1, bytes_.size());
    return found;
  }

  template <typename T>
  T next() {
    at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value{};
    if (at_ + sizeof(T) <= packed_) memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

 private:
  std::string bytes_;
  size_t packed_ = 0, text_ = 0, at_ = 0;
  uint32_t size_ = 0;
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
bool convert(std::string &out, std::string spec, bool wide, char letter, Printed &record) {
  switch (letter) {
    case 'd': case 'i': case 'u': case 'o': case 'x': case 'X':
      spec += wide ? "ll" : "";
      spec += letter;
      if (wide) append(out, spec, record.next<unsigned long long>());
      else append(out, spec, record.next<unsigned>());
      return true;
    case 'c':
      append(out, spec + 'c', static_cast<int>(record.next<uint32_t>()));
      return true;
    case 'e': case 'E': case 'f': case 'F': case 'g': case 'G': case 'a': case 'A':
      append(out, spec + letter, record.next<double>());
      return true;
    case 'p':
      append(out, spec + 'p', to_pointer(record.next<uint64_t>()));
      return true;
    case 's':
      append(out, spec + 's', (record.next<uint64_t>() ? record.text() : "(null)").c_str());
      return true;
    default: return false;
  }
}

// As lowering/rules/control/format.py reads a format: it finds the strings by it.
std::string formatted(Printed &record) {
  std::string out;
  while (char next = record.character()) {
    if (next != '%') {
      out += next;
      continue;
    }
    if (record.ahead() == '%') {
      out += record.character();
      continue;
    }
    std::string spec = "%", whole = spec;
    // As measured on an H200: a precision of '*' and the lengths z, t, j and L are not known to its printer.
    bool known = true, wide = false;
    unsigned short_ = 0;
    while (record.ahead() && strchr("-+ #0123456789.*", record.ahead())) {
      next = record.character();
      if (next != '*') spec += next;
      else if (whole.back() == '.') known = false;
      else spec += std::to_string(static_cast<int>(record.next<uint32_t>()));
      whole += next;
    }
    while (record.ahead() && strchr("hljztL", record.ahead())) {
      next = record.character();
      if (next == 'h') ++short_;
      else if (next == 'l') wide = true;
      else known = false;
      whole += next;
    }
    if (short_) spec += short_ > 1 ? "hh" : "h";
    next = record.character();
    if (next) whole += next;
    if (!next || !known || !convert(out, spec, wide, next, record)) out += whole;  // printed unchanged
  }
  return out;
}

// Prints what the queue holds, in order; true if a record is of an assertion.
bool print_queue(Queue &queue) {
  bool failed = false;
  std::map<uint64_t, std::string> texts;
  auto text_at = [&](uint64_t address) -> const std::string & {
    auto found = texts.find(address);
    if (found == texts.end()) found = texts.emplace(address, read_text(address)).first;
    return found->second;
  };
  Printed printed;
  uint64_t read = queue.end - queue.bytes();
  uint64_t written = __atomic_load_n(&queue.written, __ATOMIC_ACQUIRE);
  while (read != written) {
    auto *kind = reinterpret_cast<uint32_t *>(queue.at(read));
    uint32_t function = __atomic_load_n(kind, __ATOMIC_ACQUIRE), size = kUnit;
    if (function == kNone) break;  // of a kernel that still runs
    if (function == kPrintf && printed.read(queue, read, written - read)) {
      size = printed.size();
      std::string text = formatted(printed);
      fwrite(text.data(), 1, text.size(), stdout);
    } else if (function == kAssert) {
      failed = true;
      Assertion record;
      memcpy(&record, kind, sizeof record);
      const uint32_t *b = record.block, *t = record.thread;
      fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
              text_at(record.file).c_str(), record.line, text_at(record.function).c_str(), b[0], b[1], b[2], t[0],
              t[1], t[2], text_at(record.text).c_str());
    }
    // Any unit may be the head of a later record.
    for (uint32_t i = 0; i < size; i += kUnit) memset(queue.at(read + i), 0, sizeof *kind);
    read += size;
    __atomic_store_n(&queue.end, read + queue.bytes(), __ATOMIC_RELEASE);
  }
  if (uint32_t lost = __atomic_exchange_n(&queue.lost, 0u, __ATOMIC_ACQ_REL))
    log_line("SX0772: %u calls of %s in kernels found no room in their queue of %llu bytes; what they print is lost (the queue is emptied "
             "when the host synchronises; a larger cudaLimitPrintfFifoSize, set before the first kernel, makes it larger)",
             lost, queue.function == kPrintf ? "printf" : "assert", static_cast<unsigned long long>(queue.bytes()));
  return failed;
}

}  // namespace

uint64_t host_function(Device &device, const std::string &name, uint64_t unknown) {
  uint32_t function = kNone;
  for (uint32_t i : {kPrintf, kAssert})
    if (name == kNames[i]) function = i;
  if (function == kNone) return unknown;
  auto *context = current_context();
  size_t bytes = ring_bytes(function == kPrintf && context ? context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] : 0);
  std::lock_guard<std::mutex> guard(g_mutex);
  Blocks &blocks = blocks_of(device);
  if (!blocks.queue[function]) blocks.queue[function] = make_queue(function, bytes);
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
  // Rounded first: what is within a step of 2^64 becomes 0, and then no malloc has memory, as an H100 and an H200 say.
  size_t limit = (std::max(asked, kLimitLeast) + kLimitStep - 1) / kLimitStep * kLimitStep;
  return std::min(limit, std::max(most, kLimitLeast));
}

CUresult flush(Device &device, CUresult result) {
  std::lock_guard<std::mutex> guard(g_mutex);
  Blocks &blocks = blocks_of(device);
  if (blocks.queue[kPrintf]) print_queue(*blocks.queue[kPrintf]);
  if (blocks.queue[kAssert] && print_queue(*blocks.queue[kAssert])) return CUDA_ERROR_ASSERT;
  return result;
}

}  // namespace sx
