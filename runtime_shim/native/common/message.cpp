#include "message.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <sys/socket.h>

namespace sx {
namespace {

constexpr uint32_t kMaxMessage = 64u << 20;
constexpr size_t kPiece = 1u << 20;

bool send_all(int fd, const char *data, size_t size) {
  while (size) {
    ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool receive_all(int fd, char *data, size_t size) {
  while (size) {
    ssize_t n = recv(fd, data, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

bool send_message(int fd, const std::string &text) {
  if (text.size() > kMaxMessage) return false;
  uint32_t size = static_cast<uint32_t>(text.size());
  std::string message(reinterpret_cast<const char *>(&size), sizeof size);
  message += text;
  return send_all(fd, message.data(), message.size());
}

bool receive_message(int fd, std::string &text) {
  uint32_t size;
  text.clear();
  if (!receive_all(fd, reinterpret_cast<char *>(&size), sizeof size) || size > kMaxMessage) return false;
  // In pieces: a length alone costs no memory.
  while (text.size() < size) {
    size_t done = text.size(), piece = std::min<size_t>(size - done, kPiece);
    text.resize(done + piece);
    if (!receive_all(fd, text.data() + done, piece)) return false;
  }
  return true;
}

}  // namespace sx
