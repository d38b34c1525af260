// The device on which a job with resident operands or results runs, and its operands there.
#ifndef WARPLINE_SERVER_STORE_PLACEMENT_H_
#define WARPLINE_SERVER_STORE_PLACEMENT_H_

#include <cstddef>
#include <optional>

#include "server/base/owner.h"
#include "server/device/backend.h"
#include "server/plan/plan.h"
#include "server/schedule/device_load.h"
#include "server/schedule/job.h"
#include "server/store/replicas.h"
#include "server/store/tensor_store.h"

namespace warpline {

// A job whose results stay on the server runs where most bytes of its operands lie; TensorStore::DeviceFor
// decides between equal ones. Other jobs run there too, unless another device would end them earlier: if all
// operands are there as well, as replicas, or if the wait is longer than copying them, twice in a row.
class JobPlacement {
 public:
  // All of these outlive the placement.
  struct Parts {
    const Backend& backend;
    const TensorStore& tensors;
    Replicas& replicas;
    const DeviceLoad& load;
  };
  // Chooses the devices of a job with this plan. Its bindings have the memory of the operands.
  JobPlacement(const Parts& parts, const Caller& caller, const Job& job, const Plan& plan);
  // The job runs on this device.
  JobPlacement(const Parts& parts, int device) : parts_(parts), device_(device) {}

  // Not set: any device may run the job.
  std::optional<int> device() const { return device_; }
  // Returns whether Apply returns within microseconds.
  bool AppliesAtOnce(const Job& job, int num_inputs) const;
  // Sets the job's device. Binds operands that lie on other devices to their replicas there, or to memory for
  // new ones; without room for these they are copied for this job only.
  void Apply(Job& job, int num_inputs);

 private:
  // Makes replicas on the device of all operands that it lacks. Returns false if some cannot be made, and
  // changes nothing if `all` is set.
  bool Bind(Job& job, int num_inputs, int device, bool all);

  const Parts parts_;
  std::optional<int> device_;
  std::optional<int> earlier_;  // ends the job earlier, if the operands can be copied there
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_STORE_PLACEMENT_H_
