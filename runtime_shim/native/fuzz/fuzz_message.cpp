// common/message.cpp: what a service may send, whole or cut, and what we make of it.
#include "fuzz.h"

#include "json.h"
#include "message.h"

#include <sys/socket.h>
#include <unistd.h>

using namespace sx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int pair[2];
  if (size > 100000 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 0;
  bool sent = send(pair[0], data, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
  shutdown(pair[0], SHUT_WR);
  std::string text, back;
  uint32_t length = 0;
  if (size >= 4) memcpy(&length, data, 4);
  if (sent && receive_message(pair[1], text)) {
    SX_HOLDS(size >= 4 && text.size() == length && !memcmp(text.data(), data + 4, length));
    json::Value body;
    if (json::parse(text, body) && body.kind == json::Value::Kind::Object) {
      body["ok"].truthy();
      body["line"].text();
      body["cuda_error"].whole();
    }
    SX_HOLDS(send_message(pair[1], text) && receive_message(pair[0], back) && back == text);
  } else if (sent) {
    SX_HOLDS(size < 4 || length > size - 4);
  }
  close(pair[0]);
  close(pair[1]);
  return 0;
}
