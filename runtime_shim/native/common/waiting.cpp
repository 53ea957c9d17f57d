#include "waiting.h"

#include "json.h"
#include "log.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <cxxabi.h>
#include <map>
#include <mutex>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace sx {
namespace {

constexpr double kFirst = 2;      // seconds of waiting, of the process and of a kernel, before a line
constexpr double kAgain = 30;     // between lines
constexpr double kRewritten = 1;  // between changes of the terminal's line
constexpr int kLook = 100;        // milliseconds
// The demangler expands back references; real names have fewer.
constexpr size_t kLongestName = 16384, kReferences = 4096;

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct State {
  std::mutex mutex;
  double waited = 0;                   // seconds, of waits that are over
  double last = -kAgain;               // when the last line came
  std::map<std::string, double> said;  // kernels that had a line, and when
};

State *own() {
  static State *const state = new State;
  return state;
}

std::atomic<State *> g_shared{nullptr};

State &state() {
  State *other = g_shared.load();
  return *(other ? other : own());
}

std::string demangled(const std::string &name) {
  if (name.compare(0, 2, "_Z") != 0 || name.size() > kLongestName ||
      std::count_if(name.begin(), name.end(), [](char c) { return c == 'S' || c == 'T'; }) > static_cast<long>(kReferences))
    return name;
  int status = 0;
  char *text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string made = text && status == 0 ? text : name;
  free(text);
  return made;
}

void replace_all(std::string &text, const std::string &what, const std::string &with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) text.replace(at, what.size(), with);
}

// Without what is in angle brackets, up to the parameters, from the last space on.
std::string bare(std::string text) {
  replace_all(text, "(anonymous namespace)", "{anonymous}");
  for (const char *sign : {"operator()", "operator<<", "operator<=", "operator<", "operator>>", "operator>=", "operator->", "operator>"})
    replace_all(text, sign, "operator");
  std::string made;
  int depth = 0;
  for (char c : text) {
    if (c == '<') ++depth;
    else if (c == '>') --depth;
    else if (c == '(' && depth == 0) break;
    else if (depth == 0) made += c;
  }
  while (!made.empty() && made.back() == ' ') made.pop_back();
  size_t space = made.rfind(' ');
  if (space != std::string::npos) made.erase(0, space + 1);
  return made.empty() ? text : made;
}

size_t columns() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

}  // namespace

std::string short_name(const std::string &mangled, size_t most) {
  std::string text = demangled(mangled);
  if (text != mangled) text = bare(text);
  for (char &c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
  if (text.size() > most) text = text.substr(0, most - 3) + "...";
  return text;
}

void *waiting_state() { return own(); }
void share_waiting_state(void *other) { g_shared.store(static_cast<State *>(other)); }

Waiting::Waiting(const std::string &request) : start_(now()) {
  std::string wanted = env_string("SASSXLATE_PROGRESS");
  terminal_ = isatty(STDERR_FILENO);
  if (wanted.empty() ? !terminal_ : wanted != "1") return;
  json::Value body;
  if (json::parse(request, body) && body.kind == json::Value::Kind::Object && !body["background"].truthy())
    kernel_ = body["kernel"].text();
}

Waiting::~Waiting() {
  if (shown_ != 0 && terminal_) status_line("");
  State &all = state();
  std::lock_guard<std::mutex> guard(all.mutex);
  all.waited += now() - start_;
}

void Waiting::wait(int fd) {
  if (kernel_.empty()) return;
  pollfd answer = {fd, POLLIN, 0};
  while (poll(&answer, 1, kLook) == 0) say(now());
}

void Waiting::say(double now) {
  State &all = state();
  double mine = now - start_, sum;
  {
    std::lock_guard<std::mutex> guard(all.mutex);
    sum = all.waited + mine;
    if (terminal_) {
      if (sum < kFirst || now - shown_ < kRewritten) return;
    } else {
      auto said = all.said.find(kernel_);
      bool due = now - all.last >= kAgain || (mine >= kFirst && said == all.said.end());
      if (sum < kFirst || !due || (said != all.said.end() && now - said->second < kAgain)) return;
      all.said[kernel_] = all.last = now;
    }
  }
  shown_ = now;
  char seconds[64];
  snprintf(seconds, sizeof seconds, ", %.0f s of waiting so far", sum);
  static const std::string before = "sassxlate: translating ";
  size_t rest = before.size() + std::char_traits<char>::length(seconds) + 1, wide = terminal_ ? columns() : 120;
  std::string name = short_name(kernel_, wide > rest + 8 ? wide - rest : 8);
  if (terminal_) status_line(before + name + seconds);
  else log_line("translating %s%s", name.c_str(), seconds);
}

}  // namespace sx
