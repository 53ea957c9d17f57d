// The interface between the emulated device's library and the host code compiled for a kernel.
//
// The compiler (lowering/emulate) writes one flat, position-independent image per kernel: a 4096-byte
// header page, then code and read-only data, mapped readable and executable.  Its entry runs one wave
// from the kernel's first instruction to s_endpgm, on a fiber of the library.  It calls back only
// through SxRuntime.  lowering/emulate/image/abi.py has the same numbers; a test compares the two.
#pragma once
#include <stdint.h>

#define SX_IMAGE_MAGIC 0x42485853u  // "SXHB"
#define SX_IMAGE_VERSION 2u
#define SX_SHARED_APERTURE_HI 0x00010000u   // high words of the flat apertures: bit 48 and bit 49,
#define SX_PRIVATE_APERTURE_HI 0x00020000u  // which no user address has
#define SX_LEFT_SCC 124u  // in SxLeft, the number of SCC: that of the null register
#define SX_TURN 0x80000000u  // in yield's pc: the end of a turn (images with flag 4), not a wait

struct SxWave;
struct SxLeft;

// Why a wave stopped; the library turns these into HIP errors and one line of text.
enum SxFault : uint32_t {
  SX_FAULT_ADDRESS = 1,      // outside every mapped range (CUDA 700)
  SX_FAULT_MISALIGNED = 2,   // (716)
  SX_FAULT_TRAP = 3,         // s_trap (719); `addr` is the trap id
  SX_FAULT_LDS = 4,          // outside the workgroup's LDS (700)
  SX_FAULT_SCRATCH = 5,      // outside the lane's scratch (stack overflow, 700)
  SX_FAULT_ILLEGAL = 6,      // reached the end of the code or data between instructions (719)
  SX_FAULT_STRICT = 7,       // strict mode found use of an undefined value; `addr` is the check's id
  SX_FAULT_TRACED = 8,       // a trace (only of the runner in Python) is full
};

enum SxAccess : uint32_t { SX_READ = 1, SX_WRITE = 2, SX_ATOMIC = 4 };

struct SxRuntime {
  // s_barrier: yields until every live wave of the workgroup has arrived.
  void (*barrier)(SxWave *w, uint32_t pc);
  // s_sleep, s_setprio-free spins, and fuel run out at a loop's back edge: lets others run, refills w->fuel.
  void (*yield)(SxWave *w, uint32_t pc);
  // An access of `size` bytes at `addr` outside the arena: the host address to use instead (registered
  // host memory), or no return: the wave has faulted.
  void *(*resolve)(SxWave *w, uint64_t addr, uint32_t size, uint32_t access, uint32_t pc, uint32_t lane);
  // Ends the launch; never returns.
  void (*fault)(SxWave *w, uint32_t kind, uint32_t pc, uint32_t lane, uint64_t addr);
  // SHADER_CYCLES (which = 0) and REALTIME (which = 1, 100 MHz).
  uint64_t (*clock)(SxWave *w, uint32_t which);
  // s_sendmsg other than dealloc_vgprs; returns the value of the _rtn forms.
  uint64_t (*message)(SxWave *w, uint32_t simm16, uint32_t m0, uint32_t pc);
  // Not 0 while a launch is to end: every loop, of whatever launch, calls yield at its back edges.
  uint32_t stop, padding;
  // As resolve, but null where that would not return.
  void *(*find)(SxWave *w, uint64_t addr, uint32_t size, uint32_t access);
  // Runs the rest of the wave by the baseline tier's code, from the block at `pc` on, and sets w->executed.
  void (*leave)(SxWave *w, uint32_t pc, const SxLeft *left);
  void *reserved[7];
};

struct SxWave {
  uint32_t sgpr[112];      // 0x000 initial s0..s105; 106, 107: vcc
  uint32_t follows;        // 0x1c0 images that run several waves in one call (flag 16): not 0 if the next wave begins where this one ends
  uint32_t more;           // 0x1c4 the same images, of the first wave: workgroups of the row that follow; they count it down
  uint64_t step;           // 0x1c8 bytes from a wave to the next one
  uint32_t rows;           // 0x1d0 whether thread numbers in x go up by one from lane to lane, those in y and z staying, of the lanes of `exec`: bit 0: in each half, bit 1: in the wave
  uint32_t most[3];        // 0x1d4 the greatest thread numbers in x, y and z of the workgroup
  uint32_t unused[8];
  uint32_t v0[32];         // 0x200 initial v0: x | y << 10 | z << 20
  uint32_t exec;           // 0x280 initial EXEC
  uint32_t lds_size;       // 0x284 bytes
  uint8_t *lds;            // 0x288
  uint8_t *scratch;        // 0x290 32 * scratch_size bytes; dword d of lane l is at (d * 32 + l) * 4
  uint64_t scratch_size;   // 0x298 bytes per lane, a multiple of 4
  uint64_t arena_base;     // 0x2a0
  uint64_t arena_size;     // 0x2a8
  const SxRuntime *rt;     // 0x2b0
  int64_t fuel;            // 0x2b8 loop back edges left before yield
  void *host;              // 0x2c0 the library's own
  uint64_t strict_seed;    // 0x2c8 seeds the perturbation of approximate functions; 0: none
  uint64_t code_base;      // 0x2d0 address that byte 0 of the code object's .text has for s_getpc (0 will do)
  uint64_t *counts;        // 0x2d8 images that count (flag 2) increment a block's count when they begin it
  uint64_t executed;       // 0x2e0 instructions that the wave executed; written when it ends
  void *trace;             // 0x2e8 images that trace: where to (lowering/emulate/wave/trace_points.py)
  uint64_t traced;         // 0x2f0 the wave's number plus 1 if it is to be traced, otherwise 0
  const void *arguments;   // 0x2f8 where the host has the launch's arguments, as many bytes as the kernel's descriptor says
};                         // 0x300

// The registers of a wave that leaves a partial image (flag 32), as far as they are read later and are not what they began
// with; lowering/emulate/wave/partial/ways_out.py writes it.
struct SxLeft {
  uint32_t scalars[128];  // 0x000 by operand code: 126 is EXEC, SX_LEFT_SCC SCC
  uint64_t stored[6];     // 0x200 which are here, one bit each: the scalars, then the VGPRs
  uint64_t unused[2];
  uint32_t vgpr[1][32];   // 0x240 up to the kernel's last one
};

// What `rows` is, of v0 and `exec`, whose lanes are the first ones.
static inline uint32_t sx_rows(const SxWave *w) {
  uint32_t rows = 3;
  for (uint32_t lane = 1; lane < 32 && w->exec >> lane & 1; ++lane) {
    const uint32_t before = w->v0[lane - 1], here = w->v0[lane];
    if (here - before != 1 || here >> 10 != before >> 10) rows &= lane == 16 ? 1u : 0u;
  }
  return rows;
}

struct SxImageHeader {
  uint32_t magic, version;
  uint64_t code_offset;    // of the mapped part in the file (4096)
  uint64_t code_size;
  uint64_t entry_offset;   // from code_offset
  uint64_t flags;          // bit 0: strict; bit 1: counts; bit 2: turns; bit 3: compiled without optimisation; bit 4: runs waves that follow; bit 5: only the blocks that had been entered
  uint32_t isa;            // 0 generic AVX2, 1 AVX-512
  uint32_t counts;         // blocks that it counts; 0 if it does not
  char kernel[256];
};

typedef void (*SxEntry)(SxWave *w);
