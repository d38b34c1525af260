/* Makes and frees many clients, and expects that neither this process nor the server keeps anything of them:
 * many_clients COUNT SERVER_PID REGION_SOCKET ADDRESS... */
#define _DEFAULT_SOURCE
#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include "tests/abi/support.h"
#include "warpline/warpline.h"

enum {
  kFirst = 100,   /* clients after which everything has been used once */
  kCallEvery = 7, /* has no factor in common with the number of addresses, so calls go to all of them */
  kPutEvery = 5 * kCallEvery,
  kRegionEvery = 11 * kCallEvery,
  kSettledReads = 10,
  kMaxReads = 1200 /* a minute */
};
/* A client that leaked its smallest object would leak more. */
static const double kMaxBytesPerClient = 256;
/* The allocator and gRPC's pools of threads keep different amounts at different times. */
static const double kMaxNoiseBytes = 8 << 20;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { kKeepsFreedMemory = 1 };
#else
enum { kKeepsFreedMemory = 0 };
#endif

typedef struct {
  int descriptors, threads, server_descriptors;
} usage;

static void wait_a_little(void) {
  const struct timespec time = {0, 50 * 1000 * 1000};
  nanosleep(&time, NULL);
}

static int entries_of(const char* folder) {
  DIR* open_folder = opendir(folder);
  EXPECT(open_folder != NULL);
  int count = 0;
  while (readdir(open_folder) != NULL) ++count;
  closedir(open_folder);
  return count;
}

static double resident_bytes(void) {
  FILE* file = fopen("/proc/self/statm", "r");
  long all = 0, resident = 0;
  EXPECT(file != NULL && fscanf(file, "%ld %ld", &all, &resident) == 2);
  fclose(file);
  return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static usage usage_now(const char* server_folder) {
  const usage now = {entries_of("/proc/self/fd"), entries_of("/proc/self/task"), entries_of(server_folder)};
  return now;
}

/* Connections are closed, and threads end, some time after a client is freed. Waits until counts stand still.
 */
static usage settled(const char* server_folder) {
  usage before = usage_now(server_folder);
  for (int equal = 0, reads = 0; equal < kSettledReads && reads < kMaxReads; ++reads) {
    wait_a_little();
    const usage now = usage_now(server_folder);
    equal = memcmp(&now, &before, sizeof(now)) == 0 ? equal + 1 : 0;
    before = now;
  }
  return before;
}

static void put_and_free(warpline_client* client) {
  float data[] = {1, 2, 3, 4};
  int64_t shape[] = {2, 2};
  const DLTensor x = matrix_of(data, shape, NULL);
  warpline_tensor* tensor = NULL;
  ok(warpline_put(client, &x, NULL, &tensor));
  warpline_tensor_free(tensor);
}

static void share_and_free(warpline_client* client) {
  warpline_region* region = NULL;
  ok(warpline_region_open(client, 4096, 60, &region));
  warpline_region_free(region);
}

static void come_and_go(int number, const char* address, int own_connection, const char* region_socket) {
  warpline_client_options options;
  memset(&options, 0, sizeof(options));
  options.size = sizeof(options);
  options.own_connection = own_connection;
  options.region_socket = region_socket;
  warpline_client* client = NULL;
  ok(warpline_client_create(address, &options, &client));
  int32_t serving = 0;
  if (number % kCallEvery == 0) {
    ok(warpline_client_serving(client, NULL, 60, &serving));
    EXPECT(serving == 1);
  }
  if (number % kPutEvery == 0) put_and_free(client);
  if (number % kRegionEvery == 0) share_and_free(client);
  warpline_client_free(client);
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const int count = atoi(argv[1]), addresses = argc - 4;
  char server_folder[64];
  snprintf(server_folder, sizeof(server_folder), "/proc/%s/fd", argv[2]);
  usage first = {0, 0, 0};
  double first_bytes = 0;
  for (int i = 0; i < count; ++i) {
    if (i == kFirst) {
      first = settled(server_folder);
      first_bytes = resident_bytes();
    }
    come_and_go(i, argv[4 + i % addresses], i / addresses % 2, argv[3]);
  }
  const usage last = settled(server_folder);
  const double growth = resident_bytes() - first_bytes;
  printf(
      "descriptors %d, then %d; threads %d, then %d; descriptors of the server %d, then %d; memory grew by "
      "%.0f bytes\n",
      first.descriptors, last.descriptors, first.threads, last.threads, first.server_descriptors,
      last.server_descriptors, growth);
  EXPECT(last.descriptors <= first.descriptors);
  EXPECT(last.threads <= first.threads);
  EXPECT(last.server_descriptors <= first.server_descriptors);
  EXPECT(kKeepsFreedMemory || growth <= kMaxNoiseBytes + kMaxBytesPerClient * (count - kFirst));
  return 0;
}
