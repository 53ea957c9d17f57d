// cuLink*: the driver's linker.  The service compiles and links (runtime_shim/ptx/link.py), by NVIDIA's own tools.
#include "capability.h"
#include "files.h"
#include "handles.h"
#include "jit.h"
#include "log.h"
#include "module.h"
#include "service.h"
#include "trusted.h"

#include <cstring>
#include <unistd.h>

using namespace sx;

namespace {

constexpr size_t kPieceLimit = 1u << 30;
constexpr size_t kPieces = 1024;
constexpr size_t kNameLimit = 200;

enum Kind : int { kCubin = 0, kPtx = 1, kFatbin = 2, kObject = 3, kLibrary = 4, kNvvm = 5 };
constexpr const char *kKinds[] = {"cubin", "ptx", "fatbin", "object", "library"};

struct Piece {
  Kind kind;
  std::string name, data;
};

struct Linker {
  std::mutex mutex;
  JitOptions options;
  std::vector<Piece> pieces;
  std::string info, error;  // all messages so far
  bool complete = false;
  std::string cubin;
  double milliseconds = 0;
};

Linker *find_linker(CUlinkState state) { return Handles<Linker>::all().find(state); }

// Files for one request, deleted afterwards.
class Temporaries {
 public:
  ~Temporaries() {
    for (const std::string &path : paths_) unlink(path.c_str());
  }
  // "" if it cannot be written.
  std::string write(const std::string &data) {
    std::string path = write_temporary("image", data.data(), data.size());
    if (!path.empty()) paths_.push_back(path);
    return path;
  }

 private:
  std::vector<std::string> paths_;
};

CUresult no_file() {
  log_line("SX0907: no temporary file can be written (CUDA error %d)", CUDA_ERROR_OPERATING_SYSTEM);
  return CUDA_ERROR_OPERATING_SYSTEM;
}

// Sends a request; its messages are added to the linker's.
CUresult ask(Linker &linker, const std::string &request, json::Value &body) {
  Stopwatch watch;
  std::string line;
  CUresult result = ask_translator(request, body, line);
  linker.milliseconds += watch.milliseconds();
  std::string log = body["log"].text();
  (result == CUDA_SUCCESS ? linker.info : linker.error) += result == CUDA_SUCCESS || !log.empty() ? log : line;
  if (result != CUDA_SUCCESS) refuse_image(result, line, "cuLink");
  return result;
}

std::string common_fields(const Linker &linker) {
  std::string jit = linker.options.text();
  std::string text = ",\"cc\":" + std::to_string(capability()) + tools_environment();
  return jit.empty() ? text : text + ",\"jit\":" + json::quote(jit);
}

// The service reads it as text: letters that a file's name or a message may have.
std::string plain_name(const char *name, const char *fallback) {
  std::string made = name && *name ? name : fallback;
  if (made.size() > kNameLimit) made.resize(kNameLimit);
  for (char &c : made)
    if (c < ' ' || c > '~') c = '_';
  return made;
}

bool starts_with(const std::string &data, const char *magic, size_t size) {
  return data.size() >= size && !memcmp(data.data(), magic, size);
}

// NVIDIA's driver looks into a piece that is called PTX or a fat binary, and takes a cubin, a fat binary or PTX as what
// it is (an H100, driver 13.0): CuPy and others give NVRTC's cubin as PTX.
Kind actual(const Piece &piece) {
  if (piece.kind != kPtx && piece.kind != kFatbin) return piece.kind;
  if (starts_with(piece.data, "\x7f" "ELF", 4)) return kCubin;
  if (starts_with(piece.data, "\x50\xed\x55\xba", 4)) return kFatbin;
  const size_t text = piece.data.find_first_not_of(" \t\r\n");
  const bool ptx = text != std::string::npos && (piece.data[text] == '.' || piece.data[text] == '/');
  return ptx ? kPtx : piece.kind;
}

// What can be told from the first bytes.
bool plausible(const Piece &piece) {
  switch (piece.kind) {
    case kCubin: return starts_with(piece.data, "\x7f" "ELF", 4);
    case kFatbin: return starts_with(piece.data, "\x50\xed\x55\xba", 4);
    case kLibrary: return starts_with(piece.data, "!<arch>\n", 8);
    default: return true;
  }
}

CUresult add(Linker &linker, Piece piece, unsigned count, int *options, void **values) {
  std::lock_guard<std::mutex> guard(linker.mutex);
  if (linker.complete || linker.pieces.size() >= kPieces) return CUDA_ERROR_INVALID_VALUE;
  JitOptions own;
  CUresult result = own.add(count, options, values);
  if (result != CUDA_SUCCESS) return result;
  piece.kind = actual(piece);
  if (!plausible(piece)) {
    linker.error += piece.name + ": not a " + kKinds[piece.kind] + "\n";
    result = CUDA_ERROR_INVALID_IMAGE;
  } else {
    linker.options.add_code(own);
    if (piece.kind == kPtx) {
      Temporaries files;
      std::string path = files.write(piece.data);
      json::Value body;
      result = path.empty() ? no_file()
                            : ask(linker, "{\"op\":\"assemble\",\"image\":" + json::quote(path) + common_fields(linker) + "}", body);
    }
  }
  if (result == CUDA_SUCCESS) linker.pieces.push_back(std::move(piece));
  own.give(linker.info, linker.error, linker.milliseconds);
  linker.options.give(linker.info, linker.error, linker.milliseconds);
  return result;
}

CUresult known_kind(int kind) {
  if (kind >= 0 && kind < kNvvm) return CUDA_SUCCESS;
  if (kind != kNvvm) return CUDA_ERROR_INVALID_VALUE;
  log_line("SX0740: the linker does not accept NVVM bitcode (CUDA error %d)", CUDA_ERROR_NOT_SUPPORTED);
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult link(Linker &linker) {
  if (linker.complete) return CUDA_SUCCESS;
  Temporaries files;
  std::string inputs;
  for (const Piece &piece : linker.pieces) {
    std::string path = files.write(piece.data);
    if (path.empty()) return no_file();
    if (!inputs.empty()) inputs += ',';
    inputs += json::quote(std::string(kKinds[piece.kind]) + " " + path + "\t" + piece.name);
  }
  json::Value body;
  CUresult result = ask(linker, "{\"op\":\"link\",\"inputs\":[" + inputs + "]" + common_fields(linker) + "}", body);
  if (result != CUDA_SUCCESS) return result;
  std::string path = body["cubin"].text();
  if (!read_sealed(path, linker.cubin, kPieceLimit)) {
    refuse_image(CUDA_ERROR_UNKNOWN, "SX0903: the program " + path + " cannot be read", "cuLink");
    return CUDA_ERROR_UNKNOWN;
  }
  linker.complete = true;
  return CUDA_SUCCESS;
}

}  // namespace

SX_API cuLinkCreate_v2(unsigned count, int *options, void **values, CUlinkState *state) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!state) return CUDA_ERROR_INVALID_VALUE;
    auto linker = std::make_unique<Linker>();
    CUresult result = linker->options.add(count, options, values);
    if (result != CUDA_SUCCESS) return result;
    Handles<Linker>::all().add(linker.get());
    *state = reinterpret_cast<CUlinkState>(linker.release());
    return CUDA_SUCCESS;
  });
}

SX_API cuLinkAddData_v2(CUlinkState state, int kind, void *data, size_t size, const char *name, unsigned count,
                        int *options, void **values) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    Linker *linker = find_linker(state);
    if (!linker) return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = known_kind(kind);
    if (result != CUDA_SUCCESS) return result;
    if (!data || !size || size > kPieceLimit) return CUDA_ERROR_INVALID_VALUE;
    Piece piece = {static_cast<Kind>(kind), plain_name(name, "<unnamed>"), ""};
    if (piece.kind == kFatbin) {
      // May be the wrapper that compilers emit.
      ImageView image = view_image(data);
      if (image.kind == ImageKind::Unreadable) return CUDA_ERROR_INVALID_IMAGE;
      if (image.kind == ImageKind::Fatbin) piece.data.assign(reinterpret_cast<const char *>(image.data), image.size);
    }
    if (piece.data.empty()) piece.data.assign(static_cast<const char *>(data), size);
    return add(*linker, std::move(piece), count, options, values);
  });
}

SX_API cuLinkAddFile_v2(CUlinkState state, int kind, const char *path, unsigned count, int *options, void **values) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    Linker *linker = find_linker(state);
    if (!linker) return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = known_kind(kind);
    if (result != CUDA_SUCCESS) return result;
    if (!path) return CUDA_ERROR_INVALID_VALUE;
    if (!can_read(path)) return CUDA_ERROR_FILE_NOT_FOUND;
    const char *slash = strrchr(path, '/');
    Piece piece = {static_cast<Kind>(kind), plain_name(slash ? slash + 1 : path, "<unnamed>"), ""};
    if (!read_file(path, piece.data, kPieceLimit) || piece.data.empty()) return CUDA_ERROR_INVALID_IMAGE;
    return add(*linker, std::move(piece), count, options, values);
  });
}

SX_API cuLinkComplete(CUlinkState state, void **cubin, size_t *size) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    Linker *linker = find_linker(state);
    if (!linker) return CUDA_ERROR_INVALID_HANDLE;
    if (!cubin) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard<std::mutex> guard(linker->mutex);
    CUresult result = link(*linker);
    linker->options.give(linker->info, linker->error, linker->milliseconds);
    if (result != CUDA_SUCCESS) return result;
    *cubin = linker->cubin.data();
    if (size) *size = linker->cubin.size();
    return CUDA_SUCCESS;
  });
}

SX_API cuLinkDestroy(CUlinkState state) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    Linker *linker = find_linker(state);
    if (!linker || !Handles<Linker>::all().remove(linker)) return CUDA_ERROR_INVALID_HANDLE;
    delete linker;
    return CUDA_SUCCESS;
  });
}

// Before CUDA 6.5 sizes were the same on 64-bit hosts.
SX_API cuLinkCreate(unsigned count, int *options, void **values, CUlinkState *state) {
  return cuLinkCreate_v2(count, options, values, state);
}

SX_API cuLinkAddData(CUlinkState state, int kind, void *data, size_t size, const char *name, unsigned count, int *options,
                     void **values) {
  return cuLinkAddData_v2(state, kind, data, size, name, count, options, values);
}

SX_API cuLinkAddFile(CUlinkState state, int kind, const char *path, unsigned count, int *options, void **values) {
  return cuLinkAddFile_v2(state, kind, path, count, options, values);
}
