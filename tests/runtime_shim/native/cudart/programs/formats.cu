// What kernels print, format by format, between bars.  formats.txt is what an H200 printed.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define P(format, ...) printf("%d|" format "|\n", __LINE__, ##__VA_ARGS__)
#define KERNEL(name) __global__ void name(const char *text, double pi, int seven)

KERNEL(k0) {
  P("%d", seven);
  P("%*d", 6, 42);
  P("%-*d", 6, 42);
  P("%*d", -6, 42);
  P("%.*f", 2, pi);
  P("%.*f", -1, pi);
  P("%*.*f", 10, 3, pi);
  P("%*d %s", 4, 9, text);
}
KERNEL(k1) {
  P("%.*s", 3, text);
  P("%*s", 8, text);
  P("%*d|%.*f|", 5, 1, 2, pi);
  P("%s %s", text, text);
  P("%5s", text);
  P("%-9s.", text);
  P("%.2s", text);
  P("%.0s", text);
}
KERNEL(k2) {
  P("%s", (const char *)nullptr);
  P("%c%c%c", 'a', 0x80 + seven, 'z');
  P("%c", 0);
  P("%5c", 'q');
  P("%-5c", 'q');
  P("%%");
  P("%5%");
  P("%d%", 5);
}
KERNEL(k3) {
  P("%y", 5);
  P("%hhd", 300 + seven);
  P("%hd", 70000 + seven);
  P("%hhu", -1);
  P("%hu", -1);
  P("%hhx", -1);
  P("%ld", -5000000000l);
  P("%lld", -5000000000ll);
}
KERNEL(k4) {
  P("%lu", ~0ul);
  P("%llx", 0x123456789abcdefull);
  P("%zu", (size_t)1 << 40);
  P("%td", (ptrdiff_t)-3);
  P("%jd", -3ll);
  P("%qd", -3ll);
  P("%i %u %o %x %X", -7, 7u, 8, 255, 255);
  P("%#x %#X %#o", 255, 255, 8);
}
KERNEL(k5) {
  P("%#x %#o", 0, 0);
  P("%+d % d %+d", 5, 5, -5);
  P("%05d %-5d. %5d", 42, 42, 42);
  P("%-05d.", 42);
  P("%.5d %.0d.", 42, 0);
  P("%8.3d", 7);
  P("%08.3d", 7);
  P("%p", (void *)0x1234);
}
KERNEL(k6) {
  P("%p", (void *)nullptr);
  P("%20p", (void *)0x1234);
  P("%-20p.", (void *)0x1234);
  P("%f %e %g %a", pi, pi, pi, pi);
  P("%F %E %G %A", pi, pi, pi, pi);
  P("%.0f %#.0f", 2.5, 2.5);
  P("%.20f", 0.1);
  P("%.40g", 0.1);
}
KERNEL(k7) {
  P("%10.3e.", 12345.678);
  P("%-10.3g.", 12345.678);
  P("%+f % f", 1.5, 1.5);
  P("%010.2f", -1.5);
  P("%f %f %f", 1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0);
  P("%F %E %G", 1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0);
  P("%5f %-5f. %05f", 1.0 / 0.0, 1.0 / 0.0, 1.0 / 0.0);
  P("%g %g", 1e300, 1e-300);
}
KERNEL(k8) {
  P("%f", 1e300);
  P("%g", 5e-324);
  P("%Lf", (double)pi);
  P("%lf", pi);
  P("%hf", pi);
  P("%la", pi);
  P("%1$d %2$d", 1, 2);
  P("%2$d %1$d", 1, 2);
}
KERNEL(k9) {
  P("%'d", 1000000);
  P("%Id", 10);
  P("%I64d", 10ll);
  P("%n", (int *)nullptr);
  P("%s", "");
  P("%d %d %d %d %d %d %d %d", 1, 2, 3, 4, 5, 6, 7, 8);
  P("%d %lld %d %f %d", 1, 2ll, 3, 4.0, 5);
  P("%f %d %s %lld %c", 1.0, 2, text, 3ll, 'x');
}
KERNEL(k10) {
  P("%d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32);
  P("%1000d", 5);
  P("%.500d", 5);
  P("%-300s.", text);
  P("%10.4s.", text);
  P("a\tb\\n\a\b");
  P("\xc3\xa9 \xff");
}
KERNEL(results) {
  int r0 = printf(""), r1 = printf("x\n"), r2 = printf("%d %s\n", 1, text), r3 = printf("%d%", 1), r4 = printf("%");
  P("%d %d %d %d %d", r0, r1, r2, r3, r4);
}
KERNEL(no_format) {
  int r = printf((const char *)nullptr);
  P("%d", r);
}
__device__ char g_text[] = "hello";
__device__ char g_format[] = "made %d %s\n";
KERNEL(global_text) {
  P("%s", g_text);
  printf(g_format, seven, g_text);
  g_text[0] = 'j';
  P("%s", g_text);
}
KERNEL(own_text) {
  char local[8] = {'l', 'o', 'c', (char)('0' + seven), 0};
  P("%s", local);
  local[0] = 'm';
  P("%s", local);
}
KERNEL(shared_text) {
  __shared__ char mine[8];
  mine[0] = 's', mine[1] = (char)('0' + seven), mine[2] = 0;
  P("%s", mine);
}
KERNEL(own_format) {
  char format[16] = "f %d\n";
  format[0] += (char)seven;
  printf(format, seven);
}

// formats [KERNEL]: one of those that may end the context.
int main(int argc, char **argv) {
  setvbuf(stdout, nullptr, _IONBF, 0);
  char *text;
  cudaMalloc(&text, 16);
  cudaMemcpy(text, "banana", 7, cudaMemcpyHostToDevice);
  typedef void (*Kernel)(const char *, double, int);
  static const Kernel kernels[] = {k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10, results, global_text};
  static const Kernel others[] = {no_format, own_text, shared_text, own_format};
  int first = argc > 1 ? atoi(argv[1]) : 0, last = argc > 1 ? first + 1 : sizeof kernels / sizeof *kernels;
  for (int k = first; k < last; ++k) {
    (argc > 1 ? others : kernels)[k]<<<1, 1>>>(text, 3.14159265358979, 7);
    int result = cudaDeviceSynchronize();
    printf("%d\n", result);
  }
  return 0;
}
