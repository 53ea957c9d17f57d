// Runs a program as a debugger does: with a breakpoint at the empty function that the dynamic linker calls when libraries
// come and go, written before the program's first instruction.  Prints how often it was reached; 77: no ptrace here.
#include <cstdio>
#include <elf.h>
#include <link.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long interpreter(pid_t child) {
  char name[64];
  snprintf(name, sizeof name, "/proc/%d/auxv", child);
  FILE *file = fopen(name, "rb");
  for (Elf64_auxv_t entry; fread(&entry, sizeof entry, 1, file) == 1;)
    if (entry.a_type == AT_BASE) return fclose(file), entry.a_un.a_val;
  return fclose(file), 0;
}

// Not by the name _r_debug, of which a program gets a copy that is filled later.
static const r_debug &linker() {
  const ElfW(Dyn) *entry = _DYNAMIC;
  while (entry->d_tag != DT_DEBUG) ++entry;
  return *reinterpret_cast<const r_debug *>(entry->d_un.d_ptr);
}

int main(int, char **argv) {
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, 0, 0)) _exit(77);
    execv(argv[1], argv + 1);
    _exit(127);
  }
  int status, reached = 0;
  waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) return WEXITSTATUS(status);
  // Both processes have the same linker.
  const unsigned long at = interpreter(child) + (linker().r_brk - linker().r_ldbase);
  const unsigned long before = ptrace(PTRACE_PEEKTEXT, child, at, 0), breakpoint = (before & ~0xfful) | 0xcc;
  ptrace(PTRACE_POKETEXT, child, at, breakpoint);
  ptrace(PTRACE_CONT, child, 0, 0);
  while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    user_regs_struct registers;
    ptrace(PTRACE_GETREGS, child, 0, &registers);
    if (WSTOPSIG(status) != SIGTRAP || registers.rip != at + 1) {
      ptrace(PTRACE_CONT, child, 0, WSTOPSIG(status));
      continue;
    }
    ++reached;
    // Debuggers take the breakpoint away and write it again.  The function only returns.
    ptrace(PTRACE_POKETEXT, child, at, before);
    registers.rip = ptrace(PTRACE_PEEKDATA, child, registers.rsp, 0);
    registers.rsp += 8;
    ptrace(PTRACE_SETREGS, child, 0, &registers);
    ptrace(PTRACE_POKETEXT, child, at, breakpoint);
    ptrace(PTRACE_CONT, child, 0, 0);
  }
  printf("reached %d\n", reached);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
