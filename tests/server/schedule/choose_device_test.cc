#include "server/schedule/choose_device.h"

#include <gtest/gtest.h>

#include <vector>

namespace warpline {
namespace {

constexpr double kRate = 100;  // bytes per second

std::vector<DeviceView> Eight() { return std::vector<DeviceView>(8, {.copy_bytes_per_second = kRate}); }

TEST(ChooseDeviceTest, MostBytesThenTheLeastBusyThenTheFirst) {
  std::vector<DeviceView> devices = Eight();
  EXPECT_EQ(DeviceWithMostBytes(devices), 0);
  devices[0].busy_seconds = 1;
  EXPECT_EQ(DeviceWithMostBytes(devices), 1);
  devices[6].operand_bytes = 10;
  devices[6].busy_seconds = 5;
  EXPECT_EQ(DeviceWithMostBytes(devices), 6);
}

TEST(ChooseDeviceTest, AnIdleDeviceWithAllOperandsEndsFirst) {
  std::vector<DeviceView> devices = Eight();
  devices[2] = {.operand_bytes = 100, .busy_seconds = 3, .copy_bytes_per_second = kRate};
  devices[5] = {.operand_bytes = 100, .busy_seconds = 2, .copy_bytes_per_second = kRate};
  for (DeviceView& device : devices) device.busy_seconds += 1;
  EXPECT_EQ(DeviceThatEndsFirst(devices, 100), 0) << "one second of copying";
  devices[0].busy_seconds = 10;
  for (const int other : {1, 3, 4, 6, 7}) devices[static_cast<std::size_t>(other)].busy_seconds = 2.5;
  EXPECT_EQ(DeviceThatEndsFirst(devices, 100), 5) << "3 s there, 3.5 s elsewhere";
}

TEST(ChooseDeviceTest, WhatIsMissingIsCopied) {
  std::vector<DeviceView> devices = Eight();
  devices[1] = {.operand_bytes = 60, .busy_seconds = 1, .copy_bytes_per_second = kRate};
  devices[7] = {.operand_bytes = 40, .busy_seconds = 0, .copy_bytes_per_second = kRate};
  EXPECT_EQ(DeviceThatEndsFirst(devices, 100), 7) << "0.6 s of copying, no wait";
  devices[7].copy_bytes_per_second = kRate / 10;
  EXPECT_EQ(DeviceThatEndsFirst(devices, 100), 0) << "its copies take 6 s";
}

TEST(ChooseDeviceTest, ATieIsWonByTheDeviceWithMostBytes) {
  std::vector<DeviceView> devices = Eight();
  devices[3] = {.operand_bytes = 100, .busy_seconds = 1, .copy_bytes_per_second = kRate};
  EXPECT_EQ(DeviceThatEndsFirst(devices, 100), 3);
}

}  // namespace
}  // namespace warpline
