// Tables of problems and the kernels that take them, which tests compare with the rules. A table is read as a
// diff when it changes. It is written anew where WARPLINE_REWRITE_CHOICES is set.
#ifndef WARPLINE_TESTS_TESTING_CHOICE_TABLE_H_
#define WARPLINE_TESTS_TESTING_CHOICE_TABLE_H_

#include <functional>
#include <string>
#include <vector>

namespace warpline::testing {

// Lines "PROBLEM -> KERNELS", and comments, which begin with #.
class ChoiceTable {
 public:
  // `path` is that in the source tree.
  explicit ChoiceTable(std::string path);

  const std::vector<std::string>& problems() const { return problems_; }

  // Expects that each line names what `kernels_of` returns for its problem.
  void Expect(const std::function<std::string(const std::string&)>& kernels_of) const;
  // Expects that the table has all transposes of the breadth suite, or all else.
  void ExpectBreadth(bool transposes) const;
  // Returns the kernels that the table names, apart from each other.
  std::vector<std::string> Kernels() const;

 private:
  std::string path_;
  std::vector<std::string> lines_, problems_;
};

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_TESTING_CHOICE_TABLE_H_
