// Messages of the service's protocol on a connected socket: a little-endian u32 length, then that many bytes.
#pragma once
#include <string>

namespace sx {

// False if the connection breaks, or the peer names a length beyond 64 MiB.
bool send_message(int fd, const std::string &text);
bool receive_message(int fd, std::string &text);

}  // namespace sx
