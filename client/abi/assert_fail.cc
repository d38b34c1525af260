// Failed checks of libstdc++ (_GLIBCXX_ASSERTIONS) call this function. The function of libstdc++ itself
// exists from GCC 12 on (GLIBCXX_3.4.30), and libwarpline.so is for older ones too: the linker's --wrap takes
// this one.
#include <cstdio>
#include <cstdlib>

// NOLINTNEXTLINE: the linker's name for std::__glibcxx_assert_fail(char const*, int, char const*, char
// const*).
extern "C" [[noreturn]] void __wrap__ZSt21__glibcxx_assert_failPKciS0_S0_(const char* file, int line,
                                                                          const char* function,
                                                                          const char* condition) noexcept {
  std::fprintf(stderr, "%s:%d: %s: assertion '%s' failed\n", file, line, function, condition);
  std::abort();
}
