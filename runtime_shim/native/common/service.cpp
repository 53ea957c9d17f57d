#include "service.h"

#include "../hip/target.h"
#include "carried.h"
#include "files.h"
#include "log.h"
#include "message.h"
#include "spawn.h"
#include "waiting.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <mutex>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace sx {
namespace {

constexpr double kStartSeconds = 20;
constexpr int kMaxStarts = 5;
constexpr int kMaxAttempts = 5;

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void pause_ms(long ms) {
  timespec t = {0, ms * 1000000};
  nanosleep(&t, nullptr);
}

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(const Fd &) = delete;
  Fd &operator=(const Fd &) = delete;
  ~Fd() { reset(); }
  void reset(int fd = -1) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// Connects to a listening service of the same user; -1 where there is none.
int connect_service(const std::string &path, std::string &error) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    error = path + ": path too long for a socket";
    return -1;
  }
  memcpy(address.sun_path, path.c_str(), path.size());
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0) {
    error = path + ": " + strerror(errno);
    if (fd >= 0) close(fd);
    return -1;
  }
  ucred peer = {};
  socklen_t length = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.uid != geteuid()) {
    error = path + ": the service there belongs to another user";
    close(fd);
    return -1;
  }
  return fd;
}

bool exchange(int fd, const std::string &request, std::string &response) {
  Waiting waiting(request);
  if (!send_message(fd, request)) return false;
  waiting.wait(fd);
  return receive_message(fd, response);
}

std::string directory_of(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// Starts the service and waits until it listens; concurrent starters take turns at a lock file, and
// those that waited find it listening.
int start_service(const std::string &path, std::string &error) {
  if (env_string("SASSXLATE_SOCKET").empty() && !private_directory(directory_of(path))) {
    error = directory_of(path) + ": not a private directory of this user";
    return -1;
  }
  double deadline = now() + kStartSeconds;
  Fd lock(open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock.get() < 0) {
    error = path + ".lock: " + strerror(errno);
    return -1;
  }
  while (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (now() > deadline) {
      error = path + ".lock: held by another process that starts the service";
      return -1;
    }
    int fd = connect_service(path, error);
    if (fd >= 0) return fd;
    pause_ms(20);
  }
  int fd = connect_service(path, error);
  if (fd >= 0) return fd;
  std::string python = service_python();
  if (python.empty()) {
    error = "no Python found for the service: set SASSXLATE_PYTHON";
    return -1;
  }
  std::string log = path + ".log";
  pid_t pid = -1;
  for (int starts = 0; now() < deadline; pause_ms(20)) {
    if ((fd = connect_service(path, error)) >= 0) return fd;
    if (pid > 0 && process_alive(pid)) continue;
    // One that ended at once may have met its predecessor, which holds the place until it is gone.
    if (starts++ == kMaxStarts) {
      error = "the service (" + python + ") exited immediately; see " + log;
      return -1;
    }
    if (pid > 0) pause_ms(100);
    pid = spawn_detached({python, "-P", "-m", "sassxlate.runtime_shim.service", "--socket", absolute_path(path),
                          "--cache", cache_dir()}, log, error);
    if (pid < 0) return -1;
  }
  error = "the service (" + python + ") does not listen at " + path + "; see " + log;
  return -1;
}

}  // namespace

std::string service_socket() {
  std::string path = env_string("SASSXLATE_SOCKET");
  if (!path.empty()) return path;
  return runtime_dir() + "/service.sock";
}

ServiceReply service_call(const std::string &request) {
  ServiceReply reply;
  if (program_carries()) {
    reply.error = "the program carries its translation, and asks no service";
    return reply;
  }
  std::string path = service_socket(), response;
  // More tries: a service that is just ending may take a connection with it, and one of another version
  // of the translator reports that it ends and expects a retry.
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    if (attempt) pause_ms(50);
    int fd = connect_service(path, reply.error);
    if (fd < 0) fd = start_service(path, reply.error);
    if (fd < 0) return reply;
    Fd connection(fd);
    if (!exchange(fd, request, response)) {
      reply.error = path + ": the service closed the connection";
      continue;
    }
    reply.body = json::Value();
    reply.answered = json::parse(response, reply.body) && reply.body.kind == json::Value::Kind::Object;
    reply.error = reply.answered ? "" : "the service's answer is not a JSON object";
    if (reply.body["ok"].truthy() || !reply.body["restart"].truthy()) return reply;
  }
  return reply;
}

std::string cache_tag(std::string &error) {
  static std::mutex mutex;
  static std::string known;
  std::string tag = env_string("SASSXLATE_CACHE_TAG");
  if (!tag.empty()) return tag;
  if (program_carries()) {
    error = "the program carries its translation, and asks no service";
    return "";
  }
  std::lock_guard<std::mutex> guard(mutex);
  if (!known.empty()) return known;
  std::string name = env_string("SASSXLATE_TARGET"), matrix = env_string("SASSXLATE_MATRIX");
  if (!matrix.empty() && matrix != "exact") name = (name.empty() ? std::string(sx::kTargets[0].name) : name) + ":matrix-" + matrix;
  std::string asked = name.empty() ? "" : ",\"target\":" + json::quote(name);
  ServiceReply reply = service_call("{\"op\":\"tag\"" + asked + "}");
  if (!reply.answered) {
    error = reply.error;
    return "";
  }
  tag = reply.body["tag"].text();
  if (tag.empty() || tag.find('/') != std::string::npos || tag[0] == '.') {
    error = "the service reported no cache tag";
    return "";
  }
  return known = tag;
}

}  // namespace sx
