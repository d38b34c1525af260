#include "server/plan/binding.h"

#include <gtest/gtest.h>

#include <vector>

namespace warpline {
namespace {

class OperandsTest : public ::testing::Test {
 protected:
  // A binding to a resident tensor of so many bytes.
  Binding On(int device, int tensor, std::size_t bytes) {
    memory_.emplace_back(bytes);
    return {.tensor = tensor,
            .staged = {.area = Area::kResident},
            .memory = Buffer(memory_.back(), {.kind = Place::Kind::kDevice, .device = device}, nullptr)};
  }

  std::vector<std::vector<std::byte>> memory_;
};

TEST_F(OperandsTest, BytesAreCountedWhereTheyLie) {
  Bindings bindings = {On(1, 0, 100), On(0, 1, 50), On(1, 2, 7), On(2, 5, 1000), On(0, 3, 0)};
  bindings.push_back({.tensor = 4, .staged = {.area = Area::kResident}});  // an upload
  EXPECT_EQ(OperandBytes(bindings, /*num_inputs=*/5, /*devices=*/3), DeviceBytes({50, 107, 0}));
  EXPECT_EQ(OperandBytes({}, /*num_inputs=*/5, /*devices=*/2), DeviceBytes({0, 0}));
}

TEST_F(OperandsTest, OperandsOfOtherDevicesGetAlignedPlacesInOneBlock) {
  const Bindings bindings = {On(1, 0, 100), On(0, 1, 50), On(2, 2, 300)};
  const PeerOperands peers = FindPeerOperands(bindings, 3, /*device=*/0);
  ASSERT_EQ(peers.copies.size(), 2u);
  EXPECT_EQ(peers.copies[0].binding, 0u);
  EXPECT_EQ(peers.copies[0].offset, 0u);
  EXPECT_EQ(peers.copies[1].binding, 2u);
  EXPECT_EQ(peers.copies[1].offset, kTensorAlignment);
  EXPECT_EQ(peers.block_bytes, 3 * kTensorAlignment);
  EXPECT_EQ(peers.bytes, 400u);
}

TEST_F(OperandsTest, AnOperandThatIsBoundTwiceIsCopiedOnce) {
  Bindings bindings = {On(1, 0, 100), On(1, 1, 100)};
  bindings.push_back({.tensor = 2, .staged = {.area = Area::kResident}, .memory = bindings[0].memory});
  const PeerOperands peers = FindPeerOperands(bindings, 3, /*device=*/0);
  ASSERT_EQ(peers.copies.size(), 3u);
  EXPECT_EQ(peers.copies[0].first, 0u);
  EXPECT_EQ(peers.copies[1].first, 1u);
  EXPECT_EQ(peers.copies[2].first, 0u);
  EXPECT_EQ(peers.copies[2].offset, peers.copies[0].offset);
  EXPECT_EQ(peers.block_bytes, 2 * kTensorAlignment);
  EXPECT_EQ(peers.bytes, 200u);
}

TEST_F(OperandsTest, ACopyWithMemoryOfItsOwnNeedsNoPlaceInTheBlock) {
  Bindings bindings = {On(1, 0, 100), On(1, 1, 50)};
  bindings[0].copy = On(0, 0, 100).memory;
  const PeerOperands peers = FindPeerOperands(bindings, 2, /*device=*/0);
  EXPECT_EQ(peers.block_bytes, kTensorAlignment);
  EXPECT_EQ(peers.bytes, 150u);
}

TEST_F(OperandsTest, ResultsSlotsHostMemoryAndNothingAreNotCopied) {
  Bindings bindings = {On(1, 5, 100), On(1, 0, 0)};
  bindings.push_back({.tensor = 1, .staged = {.area = Area::kInput}});
  std::vector<std::byte> host(64);
  bindings.push_back({.tensor = 2,
                      .staged = {.area = Area::kResident},
                      .memory = Buffer(host, {.kind = Place::Kind::kHost}, nullptr)});
  EXPECT_EQ(FindPeerOperands(bindings, /*num_inputs=*/5, /*device=*/0).bytes, 0u);
}

}  // namespace
}  // namespace warpline
