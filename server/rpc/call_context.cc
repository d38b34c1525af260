#include "server/rpc/call_context.h"

namespace warpline {
namespace {

// The maximum number of requests that are compiled now or wait for it. Compiling one takes some ten
// microseconds, a program of 64 steps a millisecond.
constexpr int kMaxCompiling = 256;

}  // namespace

CallContext::CallContext(const Limits& limits, const CallEngine& engine, Metrics& metrics)
    : engine(engine),
      compiler(limits, {engine.backend, engine.admission, engine.pool}),
      metrics(metrics),
      copy_in_site(metrics, "stage_in"),
      compiling({.total = kMaxCompiling, .what = "requests of new kinds that wait to be checked"}) {
  metrics.HostCopyBytes("respond");  // always 0: results are sent from their own memory, without a copy
}

}  // namespace warpline
