"""Generated code against clang's."""
