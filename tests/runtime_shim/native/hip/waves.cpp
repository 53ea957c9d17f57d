/* Hand-written host images of kernels: what the compiler would make, as C++, to test the library alone.
 *
 * Each function is the entry of one image.  The kernel's arguments are at s[0:1]; the library is called
 * through w->rt only, so the code needs nothing from outside and can be placed anywhere. */
#include "abi.h"

#define ENTRY extern "C" __attribute__((used)) void
typedef SxWave Wave;

static inline uint8_t *args(Wave *w) { return (uint8_t *)((uint64_t)w->sgpr[1] << 32 | w->sgpr[0]); }
static inline uint64_t arg64(Wave *w, unsigned at) { return *(uint64_t *)(args(w) + at); }
static inline uint32_t arg32(Wave *w, unsigned at) { return *(uint32_t *)(args(w) + at); }

/* An access as the compiler guards it. */
static inline void *check(Wave *w, uint64_t at, uint32_t size, uint32_t access, uint32_t pc, uint32_t lane) {
  if (at - w->arena_base < w->arena_size) return (void *)at;
  return w->rt->resolve(w, at, size, access, pc, lane);
}
static inline void store32(Wave *w, uint64_t at, uint32_t value, uint32_t pc, uint32_t lane) {
  *(volatile uint32_t *)check(w, at, 4, SX_WRITE, pc, lane) = value;
}
static inline uint32_t load32(Wave *w, uint64_t at, uint32_t pc, uint32_t lane) {
  return *(volatile uint32_t *)check(w, at, 4, SX_READ, pc, lane);
}
static inline void back_edge(Wave *w, uint32_t pc) {
  if (--w->fuel <= 0) w->rt->yield(w, pc);
}
#define LANES(l) for (uint32_t l = 0; l < 32; ++l) if (w->exec >> l & 1)

/* Every lane writes v0 and its workgroup's ids (s13, s14, s15) to out[((gz * GY + gy) * GX + gx) * block + flat]. */
ENTRY ids(Wave *w) {
  uint64_t out = arg64(w, 0);
  uint32_t bx = arg32(w, 8), by = arg32(w, 12), bz = arg32(w, 16), gx = arg32(w, 20), gy = arg32(w, 24);
  uint32_t group = (w->sgpr[15] * gy + w->sgpr[14]) * gx + w->sgpr[13];
  LANES(l) {
    uint32_t v = w->v0[l], x = v & 1023, y = v >> 10 & 1023, z = v >> 20;
    uint64_t at = out + 16ull * (group * bx * by * bz + (z * by + y) * bx + x);
    store32(w, at, v, 0, l);
    for (uint32_t i = 0; i < 3; ++i) store32(w, at + 4 + 4 * i, w->sgpr[13 + i], 4, l);
  }
}

/* out[i] = a * x[i] + y[i]; arguments out, x, y, n, a; block of 256 in one dimension (id in s15). */
ENTRY saxpy(Wave *w) {
  uint64_t out = arg64(w, 0), x = arg64(w, 8), y = arg64(w, 16);
  uint32_t n = arg32(w, 24);
  float a = *(float *)(args(w) + 28);
  LANES(l) {
    uint32_t i = w->sgpr[15] * 256 + (w->v0[l] & 1023);
    if (i >= n) continue;
    float *px = (float *)check(w, x + 4ull * i, 4, SX_READ, 8, l);
    float *py = (float *)check(w, y + 4ull * i, 4, SX_READ, 12, l);
    *(float *)check(w, out + 4ull * i, 4, SX_WRITE, 16, l) = a * *px + *py;
  }
}

/* Sum of a workgroup's thread ids by a tree in LDS, with a barrier at every step; out[group]. */
ENTRY tree(Wave *w) {
  uint64_t out = arg64(w, 0);
  uint32_t block = arg32(w, 8), *lds = (uint32_t *)w->lds;
  LANES(l) lds[w->v0[l]] = w->v0[l] + w->sgpr[15];
  w->rt->barrier(w, 4);
  for (uint32_t step = block / 2; step; step /= 2) {
    LANES(l) if (w->v0[l] < step) lds[w->v0[l]] += lds[w->v0[l] + step];
    w->rt->barrier(w, 8);
  }
  if (w->v0[0] == 0) store32(w, out + 4ull * w->sgpr[15], lds[0], 12, 0);
}

/* Waves with an odd number end at once; the others meet at barriers.  out[group] counts the meetings. */
ENTRY early(Wave *w) {
  uint64_t out = arg64(w, 0);
  uint32_t wave = w->v0[0] / 32, *lds = (uint32_t *)w->lds;
  if (wave & 1) return;
  for (uint32_t i = 0; i < 10; ++i) {
    lds[wave] = i;
    w->rt->barrier(w, 4);
    for (uint32_t k = 0; k < arg32(w, 8); k += 2)
      if (lds[k] != i) w->rt->fault(w, SX_FAULT_TRAP, 8, 0, i);
    w->rt->barrier(w, 12);
  }
  if (wave == 0) store32(w, out + 4ull * w->sgpr[15], 10, 12, 0);
}

/* Waves meet at barriers, each as often as `meetings` says, and give way between some of them.  After each meeting
 * every wave that took part has said so, and none is more than one ahead; out[group * waves + wave] is its count. */
static inline uint32_t meetings(uint32_t wave, uint32_t group, uint32_t waves) { return (wave * 5 + group) % (waves + 1); }
ENTRY meet(Wave *w) {
  uint64_t out = arg64(w, 0);
  uint32_t waves = arg32(w, 8), wave = w->v0[0] / 32, group = w->sgpr[15], round = 0;
  volatile uint32_t *lds = (volatile uint32_t *)w->lds;
  for (; round < meetings(wave, group, waves); ++round) {
    if ((wave * 7 + round * 3 + group) % 4 == 0) {
      w->fuel = wave & 1;
      w->rt->yield(w, 4);
    }
    lds[wave] = round + 1;
    w->rt->barrier(w, 8);
    for (uint32_t k = 0; k < waves; ++k)
      if (meetings(k, group, waves) > round && lds[k] - (round + 1) > 1) w->rt->fault(w, SX_FAULT_TRAP, 12, 0, k);
  }
  store32(w, out + 4ull * (group * waves + wave), round, 16, 0);
}

/* Waves go from barrier to barrier, of which two have places of their own: `least` times, and one wave in three up to two
 * times more.  Where `every` is not 0, a wave in so many gives way between two, and wave `number` of the launch stops with
 * a fault after its fourth barrier.  After each barrier all waves that were at it have said so, and the order in which
 * they come from it is that of their numbers, except after one gave way; out[group * waves + wave] is what a wave counts. */
static inline uint32_t turns(uint32_t wave, uint32_t least) { return least + (wave % 3 == 1) * (wave & 2); }
ENTRY rounds(Wave *w) {
  uint64_t out = arg64(w, 0);
  uint32_t waves = arg32(w, 8), least = arg32(w, 12), every = arg32(w, 16), stop = arg32(w, 20);
  uint32_t wave = w->v0[0] / 32, group = w->sgpr[15], round = 0;
  volatile uint32_t *lds = (volatile uint32_t *)w->lds;
  for (; round < turns(wave, least); ++round) {
    if (every && (wave * 7 + round * 3 + group) % every == 0) {
      w->fuel = wave & 1;
      w->rt->yield(w, 4);
    }
    lds[wave] = round + 1;
    if (round % 3) w->rt->barrier(w, 8);
    else w->rt->barrier(w, 12);
    for (uint32_t k = 0; k < waves; ++k)
      if (turns(k, least) > round && lds[k] - (round + 1) > 1) w->rt->fault(w, SX_FAULT_TRAP, 16, 0, k);
    for (uint32_t k = wave + 1; !every && k < waves; ++k)
      if (turns(k, least) > round + 1 && lds[k] != round + 1) w->rt->fault(w, SX_FAULT_TRAP, 20, 0, k);
    if (round == 3 && group * waves + wave == stop) w->rt->fault(w, SX_FAULT_TRAP, 24, 5, 2);
  }
  w->executed = round;
  store32(w, out + 4ull * (group * waves + wave), round, 28, 0);
}

/* A barrier over the whole grid, three times: needs all workgroups in flight.  One wave a workgroup. */
ENTRY grid(Wave *w) {
  uint64_t counter = arg64(w, 0), out = arg64(w, 8);
  uint32_t groups = arg32(w, 16);
  for (uint32_t round = 1; round <= 3; ++round) {
    uint32_t *at = (uint32_t *)check(w, counter, 4, SX_ATOMIC, 0, 0);
    __atomic_fetch_add(at, 1, __ATOMIC_SEQ_CST);
    while (load32(w, counter, 4, 0) < round * groups) {
      if (arg32(w, 20)) w->rt->yield(w, 8);
      else back_edge(w, 8);
    }
  }
  store32(w, out + 4ull * w->sgpr[15], load32(w, counter, 12, 0), 16, 0);
}

/* Each workgroup waits for the flag of the one before it (a chained scan). */
ENTRY chain(Wave *w) {
  uint64_t flags = arg64(w, 0);
  uint32_t group = w->sgpr[15], before = 0;
  if (group)
    while (!(before = load32(w, flags + 4ull * (group - 1), 4, 0))) back_edge(w, 8);
  store32(w, flags + 4ull * group, before + 1, 12, 0);
}

/* Waits until the word becomes other than 0, then writes 7 after it. */
ENTRY wait_flag(Wave *w) {
  uint64_t flag = arg64(w, 0);
  while (!load32(w, flag, 0, 0)) back_edge(w, 4);
  store32(w, flag + 4, 7, 8, 0);
}

/* Adds `value` to the word `times` times, without atomics: wrong unless launches are in order. */
ENTRY bump(Wave *w) {
  uint64_t at = arg64(w, 0);
  uint32_t value = arg32(w, 8), times = arg32(w, 12);
  for (uint32_t i = 0; i < times; ++i) {
    store32(w, at, load32(w, at, 0, 0) + value, 4, 0);
    back_edge(w, 8);
  }
}

/* Lane 5 of workgroup `which` stops with a fault of `kind` at `address`; kind 0 stores there. */
ENTRY stop(Wave *w) {
  uint64_t address = arg64(w, 0);
  uint32_t kind = arg32(w, 8), which = arg32(w, 12);
  if (w->sgpr[15] != which) {
    if (arg32(w, 16)) for (;;) back_edge(w, 0x20);  /* for ever: only the fault ends it */
    return;
  }
  if (kind) w->rt->fault(w, kind, 0x1234, 5, address);
  store32(w, address, 1, 0x44, 5);
}

/* What the environment of a wave is: MXCSR, LDS size, scratch, the clocks. */
ENTRY environment(Wave *w) {
  uint64_t out = arg64(w, 0);
  uint32_t mxcsr;
  __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
  store32(w, out, mxcsr, 0, 0);
  store32(w, out + 4, w->lds_size, 0, 0);
  store32(w, out + 8, (uint32_t)w->scratch_size, 0, 0);
  uint64_t t0 = w->rt->clock(w, 1), c0 = w->rt->clock(w, 0);
  store32(w, out + 12, w->rt->clock(w, 1) >= t0 && w->rt->clock(w, 0) > c0, 0, 0);
  uint32_t dirty = 0;
  for (uint32_t i = 0; i < w->lds_size; ++i) dirty += w->lds[i] != 0;
  store32(w, out + 16, dirty, 0, 0);
  for (uint64_t i = 0; i < 32 * w->scratch_size; ++i) w->scratch[i] = (uint8_t)i;  /* all of it is there */
  for (uint32_t i = 0; i < w->lds_size; ++i) w->lds[i] = 0x5a;
  store32(w, out + 20, (uint32_t)w->rt->message(w, 131, 0, 0) != 0, 0, 0);
  store32(w, out + 24, w->code_base != 0 && (w->code_base & 255) == 0, 0, 0);
  store32(w, out + 28, w->exec, 0, 0);
  volatile uint8_t frame[200000];  /* as deep as the frames of kernels with many registers */
  for (uint32_t i = 0; i < sizeof frame; i += 512) frame[i] = (uint8_t)i;
  store32(w, out + 32, frame[512 * 3], 0, 0);
}

/* Copies the kernarg segment (`size` bytes from 16 on) to out. */
ENTRY dump_args(Wave *w) {
  uint64_t out = arg64(w, 0);
  uint32_t size = arg32(w, 8);
  for (uint32_t i = 0; i < size; i += 4) store32(w, out + i, arg32(w, i), 0, 0);
}

/* Images that run several waves in one call: `body` has a wave, its workgroup's number in a row (s13) and the one of the
 * row (s14), as the compiler's code has them: read before the wave begins. */
typedef void (*Body)(Wave *w, uint32_t x, uint32_t y);
static inline __attribute__((always_inline)) void run_all(Wave *first, Body body) {
  uint64_t executed = 0;
  for (;;) {
    uint32_t x = first->sgpr[13], y = first->sgpr[14];
    Wave *w = first;
    for (;; w = (Wave *)((uint8_t *)w + first->step)) {
      body(w, x, y);
      ++executed;
      if (!w->follows) break;
    }
    if (!first->more) {
      w->executed = executed;
      return;
    }
    --first->more;
    ++first->sgpr[13];
  }
}

/* Arguments of all: out, waves of a workgroup, workgroups of a row, and a number. */
static inline uint32_t place(Wave *w, uint32_t x, uint32_t y) { return (y * arg32(w, 12) + x) * arg32(w, 8) + w->v0[0] / 32; }

/* Counts each wave in out[place]; one in `number` gives way before, once or twice. */
static void count_body(Wave *w, uint32_t x, uint32_t y) {
  uint32_t at = place(w, x, y), every = arg32(w, 16), mixed = at * 2654435761u >> 8;
  for (uint32_t i = 0; every && mixed % every == 0 && i <= (mixed >> 8 & 1); ++i) {
    w->fuel = mixed >> 9 & 1;
    w->rt->yield(w, 4);
  }
  uint32_t *word = (uint32_t *)check(w, arg64(w, 0) + 4ull * at, 4, SX_ATOMIC, 8, 0);
  __atomic_fetch_add(word, w->exec == 0xffffffffu ? 1 : w->exec, __ATOMIC_SEQ_CST);
}
ENTRY run_count(Wave *w) { run_all(w, count_body); }

/* The wave at `number` stops with a fault in lane 5. */
static void stop_body(Wave *w, uint32_t x, uint32_t y) {
  if (place(w, x, y) == arg32(w, 16)) w->rt->fault(w, SX_FAULT_TRAP, 0x40, 5, 2);
}
ENTRY run_stop(Wave *w) { run_all(w, stop_body); }

/* Every wave waits for the one `number` places after it, which may be of another workgroup. */
static void wait_body(Wave *w, uint32_t x, uint32_t y) {
  uint32_t at = place(w, x, y), other = at + arg32(w, 16);
  if (other < arg32(w, 20))
    while (!load32(w, arg64(w, 0) + 4ull * other, 4, 0)) back_edge(w, 8);
  store32(w, arg64(w, 0) + 4ull * at, 1, 12, 0);
}
ENTRY run_wait(Wave *w) { run_all(w, wait_body); }
