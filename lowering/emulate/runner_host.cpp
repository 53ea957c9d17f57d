// Runs the waves of a launch as fibers, for tests: what runtime_shim's library does, in one thread.
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <vector>

#include "abi.h"
#include "stencils.h"

namespace {

struct Range { uint64_t base, size; };

struct Result {  // mirrored in runner.py
  uint32_t kind, pc, lane, group, wave, pad;
  uint64_t addr;
};

struct Launch {  // mirrored in runner.py
  SxEntry entry;
  uint32_t grid[3], block[3];
  int32_t wg_sgpr[3];  // where the workgroup's ids go, -1 if nowhere
  uint32_t lds_size;
  uint64_t scratch_size, arena_base, arena_size, stack_size, strict_seed, code_base;
  const uint32_t *sgpr;  // 128 initial values
  const Range *ranges;
  uint64_t range_count;
  uint32_t resident;  // all workgroups at once
  uint32_t fuel;
  Result result;
  uint64_t *counts;  // a number for each block, of images that count
  void *trace;       // of images that trace
  const uint64_t *traced;  // the numbers of the waves that are traced, ascending; null: all
  uint64_t traced_count;
  uint64_t stuck;    // waves that wait for others for ever
  const void *arguments;
  const sx::ResumableKernel *baseline;  // of partial images
  uint64_t times_left;
};

struct Fiber {
  SxWave wave;
  ucontext_t context;
  Launch *launch;
  uint32_t group, index, group_slot;
  bool done, waiting;
  void *stack;
};

ucontext_t scheduler;
Fiber *current;
bool stopped;

void leave(Fiber *f) { swapcontext(&f->context, &scheduler); }

void rt_barrier(SxWave *w, uint32_t) {
  Fiber *f = static_cast<Fiber *>(w->host);
  f->waiting = true;
  leave(f);
}

void rt_yield(SxWave *w, uint32_t) {
  Fiber *f = static_cast<Fiber *>(w->host);
  w->fuel = f->launch->fuel;
  leave(f);
}

void rt_fault(SxWave *w, uint32_t kind, uint32_t pc, uint32_t lane, uint64_t addr) {
  Fiber *f = static_cast<Fiber *>(w->host);
  f->launch->result = Result{kind, pc, lane, f->group, f->index, 0, addr};
  stopped = true;
  for (;;) leave(f);
}

void *rt_find(SxWave *w, uint64_t addr, uint32_t size, uint32_t) {
  Fiber *f = static_cast<Fiber *>(w->host);
  for (uint64_t i = 0; i < f->launch->range_count; i++) {
    const Range &r = f->launch->ranges[i];
    if (addr >= r.base && addr - r.base + size <= r.size) return reinterpret_cast<void *>(addr);
  }
  return nullptr;
}

void *rt_resolve(SxWave *w, uint64_t addr, uint32_t size, uint32_t access, uint32_t pc, uint32_t lane) {
  void *found = rt_find(w, addr, size, access);
  if (!found) rt_fault(w, SX_FAULT_ADDRESS, pc, lane, addr);
  return found;
}

uint64_t rt_clock(SxWave *, uint32_t which) {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  uint64_t ns = uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
  return which ? ns / 10 : ns;
}

uint64_t rt_message(SxWave *, uint32_t, uint32_t, uint32_t) { return 0; }

void rt_leave(SxWave *w, uint32_t pc, const SxLeft *left) {
  Launch *l = static_cast<Fiber *>(w->host)->launch;
  l->times_left++;
  if (!l->baseline || !sx::resume_kernel(*l->baseline, w, pc, *left)) rt_fault(w, SX_FAULT_ILLEGAL, pc, 0, 0);
}

const SxRuntime runtime = {rt_barrier, rt_yield, rt_resolve, rt_fault, rt_clock, rt_message, 0, 0, rt_find, rt_leave, {}};

void body(uint32_t lo, uint32_t hi) {
  Fiber *f = reinterpret_cast<Fiber *>(uint64_t(hi) << 32 | lo);
  f->launch->entry(&f->wave);
  f->done = true;
  for (;;) leave(f);
}

struct Group {
  std::vector<uint8_t> lds;
  std::vector<uint32_t> scratch;
};

void prepare(Launch *l, std::vector<Fiber *> &fibers, std::vector<Group *> &groups, uint32_t g) {
  uint32_t gx = g % l->grid[0], gy = g / l->grid[0] % l->grid[1], gz = g / l->grid[0] / l->grid[1];
  uint32_t threads = l->block[0] * l->block[1] * l->block[2], waves = (threads + 31) / 32;
  Group *group = new Group;
  group->lds.assign(l->lds_size + 64, 0);
  group->scratch.assign(l->scratch_size * 8 * waves + 16, 0);
  groups.push_back(group);
  for (uint32_t i = 0; i < waves; i++) {
    Fiber *f = new Fiber();
    SxWave &w = f->wave;
    memcpy(w.sgpr, l->sgpr, sizeof w.sgpr);
    const uint32_t id[3] = {gx, gy, gz};
    for (int k = 0; k < 3; k++)
      if (l->wg_sgpr[k] >= 0) w.sgpr[l->wg_sgpr[k]] = id[k];
    for (uint32_t lane = 0; lane < 32; lane++) {
      uint32_t t = i * 32 + lane;
      if (t >= threads) continue;
      w.exec |= 1u << lane;
      uint32_t x = t % l->block[0], y = t / l->block[0] % l->block[1],
               z = t / l->block[0] / l->block[1];
      w.v0[lane] = x | y << 10 | z << 20;
    }
    w.rows = sx_rows(&w);
    for (int axis = 0; axis < 3; axis++) w.most[axis] = l->block[axis] - 1;
    w.lds_size = l->lds_size;
    w.lds = reinterpret_cast<uint8_t *>((reinterpret_cast<uintptr_t>(group->lds.data()) + 15) & ~15ul);
    w.scratch = reinterpret_cast<uint8_t *>(group->scratch.data() + l->scratch_size * 8 * i);
    w.scratch_size = l->scratch_size;
    w.arena_base = l->arena_base;
    w.arena_size = l->arena_size;
    w.rt = &runtime;
    w.fuel = l->fuel;
    w.arguments = l->arguments;
    w.host = f;
    w.strict_seed = l->strict_seed;
    w.code_base = l->code_base;
    w.counts = l->counts;
    w.trace = l->trace;
    uint64_t number = uint64_t(g) * waves + i;
    const uint64_t *last = l->traced + l->traced_count;
    if (!l->traced || std::binary_search(l->traced, last, number)) w.traced = number + 1;
    f->launch = l;
    f->group = g;
    f->index = i;
    f->group_slot = uint32_t(groups.size() - 1);
    getcontext(&f->context);
    f->stack = mmap(nullptr, l->stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = l->stack_size;
    f->context.uc_link = nullptr;
    uint64_t p = reinterpret_cast<uint64_t>(f);
    makecontext(&f->context, reinterpret_cast<void (*)()>(body), 2, uint32_t(p), uint32_t(p >> 32));
    fibers.push_back(f);
  }
}

void run_fibers(std::vector<Fiber *> &fibers, size_t group_count) {
  size_t left = fibers.size();
  while (left && !stopped) {
    bool moved = false;
    for (Fiber *f : fibers) {
      if (f->done || f->waiting) continue;
      current = f;
      swapcontext(&scheduler, &f->context);
      moved = true;
      if (stopped) return;
      if (f->done) left--;
    }
    std::vector<uint32_t> open(group_count, 0);
    for (Fiber *f : fibers)
      if (!f->done && !f->waiting) open[f->group_slot] = 1;
    for (Fiber *f : fibers)
      if (f->waiting && !open[f->group_slot]) f->waiting = false, moved = true;
    if (!moved) return;
  }
}

}  // namespace

extern "C" int sx_run(Launch *l) {
  uint32_t total = l->grid[0] * l->grid[1] * l->grid[2];
  l->result = Result{};
  l->stuck = 0;
  stopped = false;
  for (uint32_t g = 0; g < total && !stopped;) {
    std::vector<Fiber *> fibers;
    std::vector<Group *> groups;
    uint32_t end = l->resident ? total : g + 1;
    for (; g < end; g++) prepare(l, fibers, groups, g);
    run_fibers(fibers, groups.size());
    for (Fiber *f : fibers) l->stuck += !stopped && !f->done;
    for (Fiber *f : fibers) {
      munmap(f->stack, l->stack_size);
      delete f;
    }
    for (Group *group : groups) delete group;
  }
  return stopped ? 1 : 0;
}

// ---- The baseline tier

namespace {
struct Built {  // mirrored in runner.py
  void *entry, *code;
  uint64_t size, frame;
  uint32_t instructions, blocks, missing;
  char why[116];
  const sx::ResumableKernel *resumable;
};
}  // namespace

extern "C" void *sx_pack_open(const uint8_t *data, uint64_t size) {
  std::string why;
  sx::Pack *pack = new sx::Pack;
  if (pack->open(data, size, why)) return pack;
  delete pack;
  return nullptr;
}

extern "C" void sx_pack_close(void *pack) { delete static_cast<sx::Pack *>(pack); }

// Builds a kernel, whose accesses may be unaligned if bit 16 of `mode` is set; `missing` takes at most `room` of the shapes that no pack has.  Not 0 if there is code.
extern "C" int sx_build(void *const *packs, uint64_t count, const uint8_t *text, uint64_t size, uint32_t entry,
                        uint32_t mode, uint32_t counts, Built *built, sx::Shape *missing, uint64_t room) {
  std::vector<const sx::Pack *> all;
  for (uint64_t i = 0; i < count; i++) all.push_back(static_cast<const sx::Pack *>(packs[i]));
  sx::BuiltKernel out;
  bool done = sx::build_kernel(all, {text, size, entry, mode & 0xffff, counts != 0, mode >> 16 & 1}, out);
  auto *resumable = new sx::ResumableKernel{static_cast<uint8_t *>(out.code), out.blocks_at, out.resume, out.table, out.frame};
  *built = Built{reinterpret_cast<void *>(out.entry), out.code, out.size, out.frame, out.instructions, out.blocks,
                 uint32_t(out.missing.size()), {}, resumable};
  strncpy(built->why, out.why.c_str(), sizeof built->why - 1);
  std::copy_n(out.missing.begin(), std::min<uint64_t>(room, out.missing.size()), missing);
  return done;
}

extern "C" void sx_release(void *code, uint64_t size, void *resumable) {
  sx::release_kernel(code, size);
  delete static_cast<sx::ResumableKernel *>(resumable);
}
