// Tensors and regions of the C interface.
#ifndef WARPLINE_CLIENT_ABI_TENSOR_H_
#define WARPLINE_CLIENT_ABI_TENSOR_H_

#include <unistd.h>

#include <atomic>
#include <utility>

#include "client/abi/array.h"
#include "warpline/region.h"
#include "warpline/tensor.h"
#include "warpline/warpline.h"

struct warpline_tensor {
  explicit warpline_tensor(warpline::client::Tensor of)
      : tensor(std::move(of)), type(tensor.dtype(), tensor.shape(), nullptr) {}

  const pid_t process = getpid();
  warpline::client::Tensor tensor;
  std::atomic<bool> let_go = false;  // dropped or released; several threads may do this
  const warpline::abi::View type;
};

struct warpline_region {
  const pid_t process = getpid();
  warpline::client::Region region;
};

#endif  // WARPLINE_CLIENT_ABI_TENSOR_H_
