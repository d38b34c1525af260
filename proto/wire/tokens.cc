// The tokens in a header. They replace the values that a scan has taken out.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proto/wire/scanner.h"

namespace warpline {
namespace {

constexpr std::size_t kTokenBytes = 4;
// Number of index bits in each byte of a token. The token of a reference must be valid UTF-8, so its bytes
// have 7.
constexpr int kPayloadTokenBits = 8, kReferenceTokenBits = 7;

// The tokens of scalars are the numbers from 2^52 on: no parser changes their bits.
constexpr double kFirstScalarToken = 4503599627370496;  // 2^52
constexpr double kScalarTokens = 2147483648;            // 2^31

// The tokens of integers are from 2^35 to 2^36. As varints, all of them have the same number of bytes.
constexpr std::int64_t kFirstIntegerToken = std::int64_t{1} << 35;

}  // namespace

std::optional<std::size_t> ScalarIndex(double token) {
  if (!(token >= kFirstScalarToken && token < kFirstScalarToken + kScalarTokens)) return std::nullopt;
  return static_cast<std::size_t>(token - kFirstScalarToken);
}

std::optional<std::size_t> IntegerIndex(std::int64_t token) {
  if (token < kFirstIntegerToken || token >= 2 * kFirstIntegerToken) return std::nullopt;
  return static_cast<std::size_t>(token - kFirstIntegerToken);
}

std::int64_t IntegerToken(std::size_t index) { return kFirstIntegerToken + static_cast<std::int64_t>(index); }

double ScalarToken(std::size_t index) { return kFirstScalarToken + static_cast<double>(index); }

namespace {

std::optional<std::size_t> IndexIn(std::string_view token, int bits) {
  if (token.size() != kTokenBytes) return std::nullopt;
  std::size_t index = 0;
  for (std::size_t i = 0; i < kTokenBytes; ++i) {
    index |= static_cast<std::size_t>(static_cast<unsigned char>(token[i])) << (bits * static_cast<int>(i));
  }
  return index;
}

std::string TokenOf(std::size_t index, int bits) {
  std::string token;
  for (std::size_t i = 0; i < kTokenBytes; ++i) {
    token.push_back(static_cast<char>((index >> (bits * static_cast<int>(i))) & ((1U << bits) - 1)));
  }
  return token;
}

}  // namespace

std::optional<std::size_t> PayloadIndex(std::string_view token) { return IndexIn(token, kPayloadTokenBits); }
std::string PayloadToken(std::size_t index) { return TokenOf(index, kPayloadTokenBits); }

std::optional<std::size_t> ReferenceIndex(std::string_view token) {
  return IndexIn(token, kReferenceTokenBits);
}
std::string ReferenceToken(std::size_t index) { return TokenOf(index, kReferenceTokenBits); }

}  // namespace warpline
