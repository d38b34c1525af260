#include "kernels/map/code.h"

#include <algorithm>
#include <limits>

#include "kernels/map/walk.h"

namespace warpline {
namespace {

// Bools are 0 or 1, so sums, products and the like of bools are logical operations.
MapOp OnBools(MapOp op) {
  switch (op) {
    case MapOp::kAdd:
    case MapOp::kMaximum:
    case MapOp::kBitwiseOr:
      return MapOp::kLogicalOr;
    case MapOp::kMultiply:
    case MapOp::kMinimum:
    case MapOp::kBitwiseAnd:
      return MapOp::kLogicalAnd;
    case MapOp::kBitwiseXor:
      return MapOp::kLogicalXor;
    case MapOp::kBitwiseInvert:
      return MapOp::kLogicalNot;
    default:
      return op;
  }
}

NumberType WithoutSign(MapOp op, NumberType type) {
  if (!IgnoresSign(op)) return type;
  if (type == NumberType::kI32) return NumberType::kU32;
  return type == NumberType::kI64 ? NumberType::kU64 : type;
}

class Lowering {
 public:
  explicit Lowering(const MapProblem& problem)
      : problem_(problem),
        num_inputs_(problem.inputs.size()),
        index_axes_(IndexAxes(problem)),
        places_(num_inputs_ + problem.nodes.size(), kNone),
        loaded_(num_inputs_, false) {}

  MapCode Run() {
    for (std::size_t i = 0; i < num_inputs_; ++i) {
      if (IsUniform(problem_.inputs[i])) AddUniform(i, {problem_.inputs[i].dtype, true, Short(i)});
    }
    std::vector<std::size_t> nodes;  // only nodes that become instructions
    for (std::size_t i = 0; i < problem_.nodes.size(); ++i) {
      const MapNode& node = problem_.nodes[i];
      if (node.op == MapOp::kConstant) {
        AddUniform(num_inputs_ + i, {node.dtype, false, Short(static_cast<std::size_t>(node.operands[0]))});
      } else if (!IsSame(num_inputs_ + i)) {
        nodes.push_back(i);
      }
    }
    for (int i = 0; i < problem_.ResultCount(); ++i) {
      returned_.push_back(Resolve(num_inputs_ + problem_.ResultNode(i)));
    }
    FindReaders(nodes);
    for (std::size_t begin = 0; begin < nodes.size();) {
      std::size_t end = begin + 1;
      while (end < nodes.size() && ReadsOnly(num_inputs_ + nodes[end - 1], nodes[end])) ++end;
      // In a chain, each node passes its result to the next one. So the inputs of all nodes are loaded before
      // the chain. Those of the first node are loaded last, because its input may be passed on as kLastResult
      // too.
      for (std::size_t i = begin + 1; i < end; ++i) AddLoads(nodes[i]);
      AddLoads(nodes[begin]);
      for (std::size_t i = begin; i < end; ++i) AddNode(nodes[i]);
      begin = end;
    }
    for (const std::size_t result : returned_) {
      if (result < num_inputs_) AddLoad(result);  // the result is a copy of an input
    }
    TakeSlots();
    for (const std::size_t result : returned_) code_.results.push_back(places_[result]);
    code_.slots = static_cast<int>(in_use_.size());
    return std::move(code_);
  }

 private:
  static constexpr std::uint16_t kNone = std::numeric_limits<std::uint16_t>::max();

  static std::uint16_t Short(std::size_t number) { return static_cast<std::uint16_t>(number); }

  // Returns whether a value is a cast to its own type.
  bool IsSame(std::size_t value) const {
    if (value < num_inputs_) return false;
    const MapNode& node = problem_.nodes[value - num_inputs_];
    return node.op == MapOp::kCast && node.dtype == TypeOfValue(static_cast<std::size_t>(node.operands[0]));
  }
  std::size_t Resolve(std::size_t value) const {
    while (IsSame(value)) value = static_cast<std::size_t>(problem_.nodes[value - num_inputs_].operands[0]);
    return value;
  }
  std::size_t OperandOf(const MapNode& node, int k) const {
    return Resolve(static_cast<std::size_t>(node.operands[static_cast<std::size_t>(k)]));
  }

  bool IsUniform(const MapInput& input) const {
    for (int axis = 0; axis < problem_.shape.rank; ++axis) {
      if (problem_.shape[axis] != 1 && input.strides[axis] != 0) return false;
    }
    return true;
  }

  DType TypeOfValue(std::size_t value) const {
    return value < num_inputs_ ? problem_.inputs[value].dtype : problem_.nodes[value - num_inputs_].dtype;
  }

  void Widen(DType dtype) { code_.slot_bytes = std::max(code_.slot_bytes, BytesOf(NumberTypeOf(dtype))); }

  void AddUniform(std::size_t value, const MapUniform& uniform) {
    places_[value] = static_cast<std::uint16_t>(code_.uniforms.size() | kUniformBit);
    code_.uniforms.push_back(uniform);
    Widen(uniform.dtype);
  }

  // Finds the only node that reads each value. kMany if several nodes read it, if it is a third operand,
  // which kernels read from a slot, or if it is a result.
  void FindReaders(const std::vector<std::size_t>& nodes) {
    readers_.assign(places_.size(), kNobody);
    for (const std::size_t i : nodes) {
      const MapNode& node = problem_.nodes[i];
      for (int k = 0; k < RowOf(node.op).operands; ++k) {
        std::int32_t& reader = readers_[OperandOf(node, k)];
        const auto self = static_cast<std::int32_t>(i);
        reader = k < 2 && (reader == kNobody || reader == self) ? self : kMany;
      }
    }
    for (const std::size_t result : returned_) readers_[result] = kMany;
  }
  bool ReadsOnly(std::size_t value, std::size_t node) const {
    return readers_[value] == static_cast<std::int32_t>(node);
  }

  void AddLoads(std::size_t node) {
    for (int k = 0; k < RowOf(problem_.nodes[node].op).operands; ++k) {
      const std::size_t value = OperandOf(problem_.nodes[node], k);
      if (value < num_inputs_) AddLoad(value);
    }
  }

  void AddLoad(std::size_t input) {
    if (places_[input] != kNone || loaded_[input]) return;
    loaded_[input] = true;
    code_.instructions.push_back(
        {.code = kLoadCode, .from = {Short(input)}, .dtype = problem_.inputs[input].dtype});
    results_.push_back(input);
  }

  void AddIndex(std::size_t index) {
    const MapNode& node = problem_.nodes[index];
    const auto axis = std::find(index_axes_.begin(), index_axes_.end(), node.operands[0]);
    const auto row = num_inputs_ + static_cast<std::size_t>(axis - index_axes_.begin());
    code_.instructions.push_back({.code = kIndexCode, .from = {Short(row)}, .dtype = node.dtype});
    results_.push_back(num_inputs_ + index);
  }

  void AddNode(std::size_t index) {
    const MapNode& node = problem_.nodes[index];
    if (node.op == MapOp::kIndex) return AddIndex(index);
    const int operands = RowOf(node.op).operands;
    const bool is_narrow = node.dtype != DType::kBool && node.op != MapOp::kCast &&
                           node.op != MapOp::kWhere &&
                           static_cast<int>(SizeOf(node.dtype)) < BytesOf(NumberTypeOf(node.dtype));
    MapInstruction instruction{.dtype = node.dtype, .rounds = std::uint8_t{is_narrow}};
    // Fill unused operands too: kernels may read them.
    for (std::size_t k = 0; k < 3; ++k) {
      instruction.from[k] = Short(OperandOf(node, static_cast<int>(k) < operands ? static_cast<int>(k) : 0));
    }
    const DType type = TypeOfValue(instruction.from[node.op == MapOp::kWhere ? 1 : 0]);
    const MapOp op = type == DType::kBool ? OnBools(node.op) : node.op;
    instruction.code = CodeOf(op, WithoutSign(op, NumberTypeOf(type)));
    if (WeightOf(op, type) == MapWeight::kHeavy) code_.weight = MapWeight::kHeavy;
    code_.instructions.push_back(instruction);
    results_.push_back(num_inputs_ + index);
  }

  // Before this call, instructions refer to values. After it, they refer to places.
  void TakeSlots() {
    std::vector<std::size_t> last_use(places_.size(), 0);  // index of the instruction
    for (std::size_t i = 0; i < code_.instructions.size(); ++i) {
      if (!ReadsPlaces(code_.instructions[i])) continue;
      for (const std::uint16_t value : code_.instructions[i].from) last_use[value] = i;
    }
    for (const std::size_t result : returned_) last_use[result] = code_.instructions.size();
    for (std::size_t i = 0; i < code_.instructions.size(); ++i) {
      MapInstruction& instruction = code_.instructions[i];
      std::vector<std::uint16_t> dead;
      if (ReadsPlaces(instruction)) {
        for (std::uint16_t& from : instruction.from) {
          const std::uint16_t value = from;
          from = places_[value];
          const bool has_slot = (from & kUniformBit) == 0 && from != kLastResult;
          if (has_slot && last_use[value] == i) dead.push_back(value);
        }
      }
      // A slot that holds numbers of another size must not be written by the instruction that reads it.
      const auto is_alike = [&](std::size_t value) {
        return BytesOf(NumberTypeOf(TypeOfValue(value))) == BytesOf(NumberTypeOf(instruction.dtype));
      };
      for (const std::uint16_t value : dead) {
        if (is_alike(value)) in_use_[places_[value]] = false;
      }
      const std::size_t result = results_[i];
      Widen(instruction.dtype);
      const bool is_last = i + 1 == code_.instructions.size();
      const bool passes = is_last || (last_use[result] == i + 1 && readers_[result] >= 0);
      instruction.to = places_[result] = passes ? kLastResult : TakeSlot();
      for (const std::uint16_t value : dead) {
        if (!is_alike(value)) in_use_[places_[value]] = false;
      }
    }
  }

  static bool ReadsPlaces(const MapInstruction& instruction) {
    return instruction.code != kLoadCode && instruction.code != kIndexCode;
  }

  // Returns the lowest free slot.
  std::uint16_t TakeSlot() {
    const auto free = std::find(in_use_.begin(), in_use_.end(), false);
    const auto slot = static_cast<std::uint16_t>(free - in_use_.begin());
    if (free == in_use_.end()) {
      in_use_.push_back(true);
    } else {
      *free = true;
    }
    return slot;
  }

  static constexpr std::int32_t kNobody = -1, kMany = -2;

  const MapProblem& problem_;
  const std::size_t num_inputs_;
  const std::vector<int> index_axes_;
  std::vector<std::uint16_t> places_;  // by value: the inputs, then the nodes
  std::vector<bool> loaded_;           // by input
  std::vector<std::int32_t> readers_;  // by value
  std::vector<std::size_t> results_;   // the value that each instruction computes
  std::vector<std::size_t> returned_;  // the values of the map's results
  std::vector<bool> in_use_;           // by slot
  MapCode code_;
};

}  // namespace

MapCode Lower(const MapProblem& problem) { return Lowering(problem).Run(); }

}  // namespace warpline
