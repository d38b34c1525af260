#include "tests/fuzz/call_sequence.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace warpline::testing {
namespace {

constexpr std::size_t kHead = 4;
constexpr std::size_t kMaxCalls = 32;
constexpr std::size_t kMaxMessage = 0xffff;

}  // namespace

CallSequence ReadCalls(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  CallSequence calls;
  while (bytes.size() >= kHead && calls.size() < kMaxCalls) {
    const std::size_t length = byte(2) | static_cast<std::size_t>(byte(3)) << 8;
    const std::string_view message = bytes.substr(kHead, length);
    calls.push_back({byte(0), byte(1), std::string(message)});
    bytes.remove_prefix(kHead + message.size());
  }
  return calls;
}

std::string WriteCalls(const CallSequence& calls) {
  std::string bytes;
  for (const FuzzedCall& call : calls) {
    const std::size_t length = std::min(call.message.size(), kMaxMessage);
    for (std::size_t byte :
         {std::size_t{call.method}, std::size_t{call.argument}, length & 0xff, length >> 8}) {
      bytes.push_back(static_cast<char>(byte));
    }
    bytes.append(call.message, 0, length);
  }
  return bytes;
}

void Mutate(CallSequence& calls, MessageMutator& random, const MakeCall& make_call,
            const NewMessage& new_message) {
  const auto any = [&] { return static_cast<std::ptrdiff_t>(random.Below(calls.size())); };
  for (std::uint64_t i = 1 + random.Below(3); i > 0; --i) {
    if (calls.empty() || random.OneIn(3)) {
      for (std::uint64_t more = 1 + random.Below(4); more > 0 && calls.size() < kMaxCalls; --more) {
        calls.insert(calls.begin() + static_cast<std::ptrdiff_t>(random.Below(calls.size() + 1)),
                     make_call(random));
      }
      continue;
    }
    switch (random.Below(8)) {
      case 0:
        calls.erase(calls.begin() + any());
        break;
      case 1:
        std::swap(calls[static_cast<std::size_t>(any())], calls[static_cast<std::size_t>(any())]);
        break;
      case 2:
        if (calls.size() < kMaxCalls) {
          const FuzzedCall copy = calls[static_cast<std::size_t>(any())];
          calls.insert(calls.begin() + any(), copy);
        }
        break;
      case 3:
        calls[static_cast<std::size_t>(any())].argument = static_cast<std::uint8_t>(random.Below(256));
        break;
      case 4: {
        std::string& message = calls[static_cast<std::size_t>(any())].message;
        if (message.empty()) break;
        message[random.Below(message.size())] = static_cast<char>(random.Below(256));
        if (random.OneIn(4)) message.resize(random.Below(message.size()));
        break;
      }
      default: {
        FuzzedCall& call = calls[static_cast<std::size_t>(any())];
        const std::unique_ptr<google::protobuf::Message> message = new_message(call.method);
        if (message == nullptr) break;
        static_cast<void>(message->ParsePartialFromString(call.message));
        random.Mutate(*message);
        call.message = message->SerializePartialAsString();
      }
    }
  }
}

}  // namespace warpline::testing
