// A call of an operation in an expression, and the names of its arguments.
#ifndef WARPLINE_CLIENT_SRC_EXPRESSION_CALL_H_
#define WARPLINE_CLIENT_SRC_EXPRESSION_CALL_H_

#include <google/protobuf/message.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/src/expression_tree.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

struct ExpressionCall {
  v1::Step step;
  std::string name;                                // of the operation
  google::protobuf::Message* operation = nullptr;  // the operation's message within the step
  std::vector<Tree> operands;
  std::set<std::string> given;  // names of the arguments
  std::string c, bias;
  std::optional<Tree> last;  // the optional last operand of searchsorted and pad

  // A reduction that is called by its own name, such as mean, has no argument op.
  bool TakesOp() const { return name == "reduce" || name == "scan"; }
};

// Returns the operations that expressions call, for errors.
std::string OperationNames();
// Returns the name of a field as people write it: dtype for data_type.
std::string ShortName(const std::string& field);
// Returns the error for a name that is no argument of the call.
std::string UnknownArgument(const std::string& key, const ExpressionCall& call);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_EXPRESSION_CALL_H_
