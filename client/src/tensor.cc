#include "warpline/tensor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/leases.h"

namespace warpline::client {

std::string ShortId(std::string_view id) {
  constexpr std::size_t kShown = 8;
  return absl::StrCat("...", std::string(id.substr(id.size() - std::min(id.size(), kShown))));
}

Tensor::Tensor(TensorInfo info, const std::shared_ptr<Leases>& leases, bool owned)
    : info_(std::move(info)), leases_(leases), key_(leases->Keep(info_, owned)) {}

Tensor::Tensor(Tensor&& other) noexcept
    : info_(std::move(other.info_)), leases_(std::move(other.leases_)), key_(other.key_) {}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  if (this == &other) return *this;
  LetGo(true);
  info_ = std::move(other.info_);
  leases_ = std::move(other.leases_);
  key_ = other.key_;
  return *this;
}

std::string Tensor::Release() {
  LetGo(false);
  return info_.id;
}

void Tensor::LetGo(bool drop) {
  if (leases_ != nullptr) leases_->LetGo(key_, drop);
  leases_ = nullptr;
}

}  // namespace warpline::client
