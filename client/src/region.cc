#include "warpline/region.h"

#include <utility>

#include "client/src/shared_region.h"
#include "kernels/status_macros.h"

namespace warpline::client {

Region::Region(std::shared_ptr<SharedRegion> shared) : shared_(std::move(shared)) {}
Region::~Region() = default;
Region::Region(Region&& other) noexcept = default;
Region& Region::operator=(Region&& other) noexcept = default;

absl::StatusOr<Array> Region::Allocate(DType dtype, const Shape& shape) {
  ASSIGN_OR_RETURN(const std::size_t bytes, ByteSize({.dtype = dtype, .shape = shape}));
  ASSIGN_OR_RETURN(std::shared_ptr<void> owner, shared_->Allocate(bytes));
  void* const data = owner.get();
  return Array::Over(dtype, shape, data, bytes, std::move(owner));
}

std::size_t Region::bytes() const { return shared_->bytes(); }

std::size_t Region::free_bytes() const { return shared_->free_bytes(); }

absl::Status Region::status() const { return shared_->status(); }

}  // namespace warpline::client
