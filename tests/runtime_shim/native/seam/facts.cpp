// Prints what a declaration of HIP means to a caller: how wide each argument is, what constants are, where
// members lie.  Compiled once with AMD's header and once with this project's; both must print the same.
//
// HEADER is the header after the C preprocessor (AMD's adds overloads for C++, which have no address);
// FACTS is a list of FUNCTION(name), CONSTANT(name) and MEMBER(struct, name).
#define _Bool bool
extern "C" {
#include HEADER
int printf(const char *, ...);
}

// A pointer is a pointer, an enumeration is an integer of its size.
template <typename T>
struct Type {
  static constexpr char letter = __is_enum(T) || T(1) / T(2) == T(0) ? 'i' : 'f';
  static constexpr int size = sizeof(T);
};
template <typename T>
struct Type<T *> {
  static constexpr char letter = 'p';
  static constexpr int size = sizeof(T *);
};

template <typename Result, typename... Args>
void function(const char *name, Result (*)(Args...)) {  // of the type alone: nothing is linked
  printf("%s %c%d(", name, Type<Result>::letter, Type<Result>::size);
  ((void)printf(" %c%d", Type<Args>::letter, Type<Args>::size), ...);
  printf(" )\n");
}

int main() {
#define FUNCTION(name) function(#name, static_cast<decltype(&name)>(nullptr));
#define CONSTANT(name) printf(#name " %lld\n", (long long)(name));
#define MEMBER(type, name) printf(#type "." #name " %zu+%zu of %zu\n", __builtin_offsetof(type, name), sizeof(type::name), sizeof(type));
#include FACTS
}
