// Client of the translation service (one Python process per user), which it starts on demand.
//
// Protocol: a Unix stream socket; a request and its response are each a little-endian u32 length and
// that many bytes of UTF-8 JSON.
#pragma once
#include "json.h"

#include <string>

namespace sx {

struct ServiceReply {
  bool answered = false;  // false: no service could be reached; `error` says why
  json::Value body;       // the response; body["ok"] says whether the request was granted
  std::string error;
};

// Sends one request (a JSON object as text) and waits for its response.  Starts the service if
// none listens; never for a program that carries its translation (carried.h).  Safe to call from several threads and processes at once.
ServiceReply service_call(const std::string &request);

// SASSXLATE_SOCKET, otherwise service.sock in a private directory of this user's.
std::string service_socket();

// SASSXLATE_CACHE_TAG, otherwise the service's answer to {"op":"tag"}: the name of the cache's subdirectory
// for the current translator, LLVM and host CPU.  Requested once; "" with a reason if there is no answer.
std::string cache_tag(std::string &error);

}  // namespace sx
