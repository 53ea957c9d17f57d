// Error Log Management: messages, callbacks, dumps and iterators.
#include "driver.h"

#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::vector<std::string> heard;

void CUDA_CB hear(void *data, CUlogLevel level, char *message, size_t length) {
  EXPECT(level == CU_LOG_LEVEL_ERROR && strlen(message) == length);
  heard.push_back(static_cast<const char *>(data) + std::string(message));
  cuMemFree(5);  // what fails in a callback is not told
}

std::string dump(CUlogIterator *iterator, size_t room, CUresult wanted = CUDA_SUCCESS) {
  std::string text(room + 1, '#');
  size_t size = room;
  RESULT(cuLogsDumpToMemory(iterator, &text[0], &size, 0), wanted);
  EXPECT(size < room || (!size && !room));
  EXPECT(text[room] == '#' && (wanted || !text[size]));
  return text.substr(0, size);
}

size_t count(const std::string &text, const std::string &what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

}  // namespace

void logs() {
  CUlogIterator none = 9, start_of = 0, at;
  CUlogsCallbackHandle one, two;
  OK(cuLogsCurrent(&none, 0));
  EXPECT(none == 0 && dump(nullptr, 100).empty());
  OK(cuLogsRegisterCallback(hear, const_cast<char *>("a "), &one));
  RESULT(cuDeviceGet(&device, 0), CUDA_ERROR_NOT_INITIALIZED);  // before cuInit: not logged
  EXPECT(heard.empty());
  start();
  OK(cuLogsCurrent(&start_of, 0));
  heard.clear();
  OK(cuLogsRegisterCallback(hear, const_cast<char *>("b "), &two));
  OK(cuLogsRegisterCallback(hear, const_cast<char *>("c "), nullptr));
  CUdeviceptr p;
  RESULT(cuMemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE);
  const std::string text = "Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemAlloc_v2";
  EXPECT((heard == std::vector<std::string>{"a " + text, "b " + text, "c " + text}));
  RESULT(cuLogsCurrent(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT(heard.size() == 9 && heard[3] == "a Iterator cannot be NULL");
  RESULT(cuLogsRegisterCallback(nullptr, nullptr, &two), CUDA_ERROR_INVALID_VALUE);
  EXPECT(heard.back() == "c Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuLogsRegisterCallback");
  OK(cuLogsUnregisterCallback(one));
  RESULT(cuLogsUnregisterCallback(one), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuLogsUnregisterCallback(nullptr), CUDA_ERROR_INVALID_VALUE);

  // From an iterator on, which goes on; as much as there is room for, the newest last.
  OK(cuLogsCurrent(&at, 0));
  for (int i = 0; i < 5; ++i) RESULT(cuMemFree(100 + i), CUDA_ERROR_INVALID_VALUE);
  CUlogIterator from = at;
  std::string whole = dump(&from, 4096);
  EXPECT(count(whole, " from cuMemFree_v2\n") >= 5 && whole[0] == '[' && count(whole, "][CUDA][E] ") == count(whole, "\n"));
  EXPECT(dump(&from, 4096).empty() && from > at);
  from = at;
  std::string some = dump(&from, 250);
  EXPECT(count(some, "\n") == 3 && some.compare(0, 5, "Older") == 0 && whole.rfind(some.substr(some.find('[')) ) != std::string::npos);
  from = at;
  dump(&from, 10, CUDA_ERROR_INVALID_VALUE);
  EXPECT(from == at);
  size_t size = 10;
  RESULT(cuLogsDumpToMemory(nullptr, nullptr, &size, 0), CUDA_ERROR_INVALID_VALUE);
  char byte;
  RESULT(cuLogsDumpToMemory(nullptr, &byte, nullptr, 0), CUDA_ERROR_INVALID_VALUE);

  // The oldest are overwritten.
  for (int i = 0; i < 400; ++i) cuMemFree(1000);
  whole = dump(nullptr, 30000);
  EXPECT(whole.size() <= 25700 && whole.size() > 25000 && whole.compare(0, 5, "Older") == 0);
  from = start_of;
  EXPECT(dump(&from, 30000).size() <= 25700);
  RESULT(cuLogsDumpToFile(nullptr, "/nowhere/log", 0), CUDA_ERROR_INVALID_VALUE);
  RESULT(cuLogsDumpToFile(nullptr, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  if (const char *path = getenv("LOG_DUMP")) OK(cuLogsDumpToFile(nullptr, path, 0));
}
