// A kernel of a module: its translation, its code object on each device, and code of another engine
// that takes its place while the program runs.
#include "module.h"

#include "files.h"
#include "log.h"
#include "service.h"
#include "trace.h"
#include "trusted.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <pthread.h>

namespace sx {
namespace {

constexpr double kLookAfter = 50;  // milliseconds between two looks for another engine's code

// The engine that writes code for kernels that run already, in the background.
const std::string &background_engine() {
  static const std::string *const name = new std::string(env_string("SASSXLATE_BACKGROUND_ENGINE"));
  return *name;
}

// Sends the service a request whose answer nothing waits for: the service may have to be started.
void ask_aside(std::string request) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  auto *text = new std::string(std::move(request));
  auto run = [](void *argument) -> void * {
    const std::unique_ptr<std::string> mine(static_cast<std::string *>(argument));
    service_call(*mine);
    return nullptr;
  };
  if (pthread_create(&thread, nullptr, run, text) == 0) pthread_detach(thread);
  else delete text;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

Kernel::Kernel(Module *module, const KernelInfo *kernel)
    : owner(module),
      info(kernel),
      max_dynamic_shared(std::max(0, 49152 - kernel->shared)),
      loaded_(driver().devices.size()) {}

CUresult Kernel::refuse(CUresult error, const std::string &line) {
  say_refused(info->name, error, line);
  return error;
}

CUresult Kernel::refuse_launch(CUresult error, const std::string &code, const std::string &why) {
  return launch_refused_.exchange(true) ? error : refuse(error, code + ": " + info->name + ": " + why);
}

CUresult Kernel::launched(CUresult result) {
  switch (result) {
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_UNKNOWN:
    case CUDA_ERROR_OPERATING_SYSTEM:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      if (!refused_at_launch_.exchange(true))
        refuse(result, "SX0716: " + info->name + ": the device does not take its code object");
      return result;
    default: return result;
  }
}

void Kernel::say_what_differs() {
  if (!launch.comes_apart || difference_said_.exchange(true)) return;
  const std::string line = "SX0773: " + info->name +
                           ": it recurses and saves barriers: an NVIDIA GPU may run lanes apart that stay together here, and "
                           "votes, shuffles and barriers that do not name their lanes may see others";
  log_line("%s", line.c_str());
  report({"warned", "SX0773", line});
}

bool Kernel::read_cached(const std::string &stem) {
  std::string text, error;
  if (!read_sealed(stem + ".launch", text, kTextLimit) || !parse_launch(text, launch, error)) return false;
  return read_sealed(stem + ".hsaco", code_, kImageLimit) && code_.compare(0, 4, "\x7f" "ELF") == 0;
}

// "cuda_error N", "code SX....", "line TEXT".
bool Kernel::read_refusal(const std::string &text) {
  int error = 0;
  size_t line = text.find("\nline ");
  if (sscanf(text.c_str(), "cuda_error %d\n", &error) != 1 || error <= 0 || line == std::string::npos ||
      text.back() != '\n')
    return false;
  line += 6;
  translation_ = refuse(error, text.substr(line, text.find('\n', line) - line));
  return true;
}

CUresult Kernel::fetch() {
  json::Value body;
  std::string line;
  std::string request = "{\"op\":\"translate\",\"module\":" + json::quote(owner->key()) +
                        ",\"kernel\":" + json::quote(info->name) + "}";
  CUresult result = ask_translator(request, body, line);
  if (result != CUDA_SUCCESS && body["code"].text() == "SX0906") {
    Manifest same;
    std::string directory;
    result = owner->ask_service(same, directory);
    if (result != CUDA_SUCCESS) return result;
    result = ask_translator(request, body, line);
  }
  if (result != CUDA_SUCCESS) return refuse(result, line);
  std::string text, error;
  if (!read_sealed(body["launch"].text(), text, kTextLimit) || !parse_launch(text, launch, error))
    return refuse(CUDA_ERROR_UNKNOWN, "SX0715: " + info->name + ": its launch information cannot be read: " + error);
  if (!read_sealed(body["code_object"].text(), code_, kImageLimit))
    return refuse(CUDA_ERROR_UNKNOWN, "SX0715: " + info->name + ": its code object cannot be read");
  return CUDA_SUCCESS;
}

CUresult Kernel::translate() {
  if (owner->is_carried()) return read_carried_translation();
  std::string cache, tag, text;
  if (!cache_place(cache, tag)) return CUDA_ERROR_OPERATING_SYSTEM;
  stem_ = cache + "/kernel/" + tag + "/" + owner->key() + "-" + info->key;
  CUresult result = CUDA_SUCCESS;
  if (!read_cached(stem_)) {
    if (read_sealed(stem_ + ".refused", text, kTextLimit) && read_refusal(text)) return translation_;
    result = fetch();
  }
  if (result == CUDA_SUCCESS && !background_engine().empty()) {
    better_ = Better::Wanted;
    next_look_ = Stopwatch::now() + kLookAfter;
  }
  return result;
}

void Kernel::look_for_better() {
  if (better_ == Better::None) return;
  const double now = Stopwatch::now();
  if (now < next_look_) return;
  next_look_ = now + kLookAfter;
  if (can_read(stem_ + ".upgraded")) {
    better_ = Better::None;
    std::string code;
    if (!read_sealed(stem_ + ".hsaco", code, kImageLimit) || code == code_) return;
    code_ = std::move(code);
    ++number_;
  } else if (better_ == Better::Wanted) {
    better_ = Better::Asked;
    const bool ready = env_string("SASSXLATE_TIER") == "llvm";
    ask_aside("{\"op\":\"upgrade\",\"module\":" + json::quote(owner->key()) + ",\"kernel\":" + json::quote(info->name) +
              ",\"engine\":" + json::quote(background_engine()) + (ready ? ",\"ready\":true" : "") + ",\"background\":true}");
  }
}

void Kernel::take_better(Device &device, LoadedKernel &loaded) {
  if (loaded.code == number_) return;
  LoadedKernel made = loaded;
  made.code = loaded.code = number_;
  if (hip().hipModuleLoadData(&made.module, code_.data()) != hipSuccess) return;
  if (hip().hipModuleGetFunction(&made.function, made.module, info->name.c_str()) != hipSuccess) {
    hip().hipModuleUnload(made.module);
    return;
  }
  before_.emplace_back(static_cast<size_t>(device.ordinal), loaded);
  loaded = made;
}

CUresult Kernel::load(Device &device, hipFunction_t &function) {
  std::lock_guard<std::mutex> guard(mutex_);
  LoadedKernel &loaded = loaded_[static_cast<size_t>(device.ordinal)];
  if (loaded.generation != device.generation) loaded = LoadedKernel();
  if (!loaded.tried) {
    loaded.generation = device.generation;
    if (!translated_) {
      translation_ = translate();
      translated_ = true;
      if (translation_ == CUDA_SUCCESS) {
        owner->report_place();
        report({"kernel", owner->key(), info->key, info->name});
      }
    }
    loaded.result = translation_;
    if (loaded.result == CUDA_SUCCESS) {
      loaded.result = from_hip(hip().hipModuleLoadData(&loaded.module, code_.data()));
      if (loaded.result == CUDA_SUCCESS)
        loaded.result = from_hip(hip().hipModuleGetFunction(&loaded.function, loaded.module, info->name.c_str()));
      if (loaded.result != CUDA_SUCCESS && !stays(loaded.result))  // that of an earlier kernel
        refuse(loaded.result, "SX0716: " + info->name + ": the device does not take its code object");
    }
    loaded.tried = true;
    loaded.code = number_;
  } else if (loaded.result == CUDA_SUCCESS) {
    look_for_better();
    take_better(device, loaded);
  }
  function = loaded.function;
  return loaded.result;
}

}  // namespace sx
