#include "server/device/attempts.h"

#include <utility>

#include "server/observe/log.h"

namespace warpline {

Attempts::Attempt::Attempt(Attempts& attempts, int device, const std::string& problem,
                           std::string_view variant)
    : attempts_(attempts), device_(device) {
  MutexLock lock(&attempts_.mutex_);
  Device& tries = attempts_.devices_[device_];
  tries.problem = problem;
  tries.variant = std::string(variant);
}

Attempts::Attempt::~Attempt() {
  MutexLock lock(&attempts_.mutex_);
  attempts_.devices_[device_].variant.clear();
}

void Attempts::SetCondemn(int device, Condemn condemn) {
  MutexLock lock(&mutex_);
  devices_[device].condemn = std::move(condemn);
}

void Attempts::Blame(int device, std::string_view reason) {
  // The lock is kept while a file is written: another thread that blames may end the process when it returns.
  MutexLock lock(&mutex_);
  Device& tries = devices_[device];
  if (tries.variant.empty()) return;
  Log("error", "the device failed while a variant was tried, which will not be tried again",
      {{"problem", tries.problem}, {"variant", tries.variant}, {"reason", std::string(reason)}});
  if (tries.condemn) tries.condemn(tries.problem, tries.variant);
  tries.variant.clear();
}

}  // namespace warpline
