#include <cstdio>
extern "C" int run_library();
int main() { printf("library %d\n", run_library()); }
