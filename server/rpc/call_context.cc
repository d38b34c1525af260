#include "server/rpc/call_context.h"

namespace warpline {
namespace {

// Requests that wait to be compiled or are compiled now. One takes some ten microseconds, a program of 64
// steps a millisecond.
constexpr int kMaxCompiling = 256;

}  // namespace

CallContext::CallContext(const Limits& limits, const CallEngine& engine, Metrics& metrics)
    : engine(engine),
      compiler(limits, {engine.backend, engine.admission, engine.pool}),
      metrics(metrics),
      copy_in_site(metrics, "stage_in"),
      compiling({.total = kMaxCompiling, .what = "requests of new kinds that wait to be checked"}) {
  metrics.HostCopyBytes("respond");  // a copy that is not made: results are sent from where they lie
}

}  // namespace warpline
