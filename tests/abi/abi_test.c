/* Tests the C interface of libwarpline.so against a daemon on a unix socket: abi_test ADDRESS. */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/abi/support.h"
#include "warpline/warpline.h"

enum { kRows = 3, kColumns = 5, kElements = kRows * kColumns };

/* Expects this code and that the message has `text`. */
static void refused(warpline_error* error, int32_t code, const char* text) {
  EXPECT(error != NULL);
  if (warpline_error_code(error) != code || strstr(warpline_error_message(error), text) == NULL) {
    fprintf(stderr, "error %d: %s\n  expected: %d, %s\n", warpline_error_code(error),
            warpline_error_message(error), code, text);
  }
  EXPECT(warpline_error_code(error) == code);
  EXPECT(strstr(warpline_error_message(error), text) != NULL);
  warpline_error_free(error);
}

static warpline_client* connect_to(const char* address) {
  warpline_client_options options;
  memset(&options, 0, sizeof(options));
  options.size = sizeof(options);
  options.own_connection = 1;
  warpline_client* client = NULL;
  ok(warpline_client_create(address, &options, &client));
  return client;
}

static warpline_program* parse(const char* text) {
  warpline_program* program = NULL;
  ok(warpline_program_parse(text, &program));
  return program;
}

static void fill(float* data, int count) {
  for (int i = 0; i < count; ++i) data[i] = (float)i;
}

/* A matrix of kRows x kColumns with the strides given in elements, transposed, is right. */
static void transposes(warpline_client* client, const char* what, int64_t row, int64_t column,
                       int64_t offset) {
  enum { kRoom = 256 };
  float data[kRoom];
  fill(data, kRoom);
  int64_t shape[] = {kRows, kColumns}, strides[] = {row, column};
  DLTensor matrix = matrix_of(data, shape, strides);
  matrix.byte_offset = (uint64_t)offset * sizeof(float);
  const warpline_input input = {"x", &matrix, NULL, NULL};
  warpline_program* program = parse("transpose(x)");
  warpline_result* result = NULL;
  ok(warpline_run(client, program, &input, 1, NULL, 0, NULL, &result));
  const DLTensor* y = warpline_result_array(result, 0);
  EXPECT(y->ndim == 2 && y->shape[0] == kColumns && y->shape[1] == kRows);
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kColumns; ++j) {
      const float want = data[offset + i * row + j * column];
      const float got = ((const float*)y->data)[j * kRows + i];
      if (want != got) fprintf(stderr, "%s: element %d,%d is %g, not %g\n", what, (int)i, (int)j, got, want);
      EXPECT(want == got);
    }
  }
  warpline_result_free(result);
  warpline_program_free(program);
}

static void arrays_may_have_any_strides(warpline_client* client) {
  transposes(client, "dense", kColumns, 1, 0);
  transposes(client, "padded rows", 8, 1, 0);
  transposes(client, "an offset", 8, 1, 7);
  transposes(client, "column-major", 1, kRows, 0);
  transposes(client, "every second", 20, 2, 0);
  transposes(client, "backwards", -10, -1, 100);
  transposes(client, "broadcast", 0, 1, 3);
  transposes(client, "rows far apart", 40, 1, 0);
}

static void results_go_where_they_shall(warpline_client* client) {
  float x_data[kElements], y_data[3 * kElements];
  fill(x_data, kElements);
  int64_t x_shape[] = {kRows, kColumns}, y_shape[] = {kColumns, kRows}, spread[] = {2 * kRows, 2};
  const DLTensor x = matrix_of(x_data, x_shape, NULL);
  const warpline_input input = {"x", &x, NULL, NULL};
  warpline_program* program = parse("transpose(x)");
  for (int is_spread = 0; is_spread < 2; ++is_spread) {
    const DLTensor y = matrix_of(y_data, y_shape, is_spread ? spread : NULL);
    warpline_destination destination;
    memset(&destination, 0, sizeof(destination));
    destination.out = &y;
    memset(y_data, 0, sizeof(y_data));
    warpline_result* result = NULL;
    /* A caller that was built before there were reports gives a smaller structure. */
    const warpline_call_options options = {
        .size = is_spread ? offsetof(warpline_call_options, report) : sizeof(options), .report = 1};
    ok(warpline_run(client, program, &input, 1, &destination, 1, &options, &result));
    for (int j = 0; j < kColumns; ++j) {
      for (int i = 0; i < kRows; ++i) {
        const int at = is_spread ? 2 * (j * kRows + i) : j * kRows + i;
        EXPECT(y_data[at] == x_data[i * kColumns + j]);
        EXPECT(!is_spread || y_data[at + 1] == 0);
      }
    }
    if (!is_spread) EXPECT(warpline_result_array(result, 0)->data == (void*)y_data);
    EXPECT(warpline_result_count(result) == 1);
    EXPECT(warpline_result_variant_count(result) == 1); /* of one step it is always told */
    EXPECT(strlen(warpline_result_variant(result, 0)) > 0);
    EXPECT(warpline_result_seconds(result).device > 0);
    EXPECT(strlen(warpline_result_request_id(result)) > 0);
    warpline_result_free(result);
  }
  const DLTensor wrong = matrix_of(y_data, x_shape, NULL);
  warpline_destination destination;
  memset(&destination, 0, sizeof(destination));
  destination.out = &wrong;
  warpline_result* result = NULL;
  refused(warpline_run(client, program, &input, 1, &destination, 1, NULL, &result), WARPLINE_INVALID_ARGUMENT,
          "out is f32[3,5], the output f32[5,3]");
  destination.keep = 1;
  refused(warpline_run(client, program, &input, 1, &destination, 1, NULL, &result), WARPLINE_INVALID_ARGUMENT,
          "more than one of out, region and keep");
  EXPECT(result == NULL);
  warpline_program_free(program);
}

static void tensors_stay_until_they_are_freed(warpline_client* client) {
  float data[kElements];
  fill(data, kElements);
  int64_t shape[] = {kRows, kColumns};
  const DLTensor x = matrix_of(data, shape, NULL);
  warpline_tensor* tensor = NULL;
  ok(warpline_put(client, &x, NULL, &tensor));
  const DLTensor* type = warpline_tensor_type(tensor);
  EXPECT(type->data == NULL && type->ndim == 2 && type->shape[1] == kColumns && type->dtype.bits == 32);
  EXPECT(warpline_tensor_device(tensor) == 0);

  const warpline_input input = {"x", NULL, tensor, NULL};
  warpline_destination keep;
  memset(&keep, 0, sizeof(keep));
  keep.keep = 1;
  warpline_program* program = parse("scale(x, factor=2)");
  warpline_result* result = NULL;
  ok(warpline_run(client, program, &input, 1, &keep, 1, NULL, &result));
  EXPECT(warpline_result_array(result, 0) == NULL);
  EXPECT(warpline_result_take_array(result, 0) == NULL);
  warpline_tensor* doubled = warpline_result_take_tensor(result, 0);
  EXPECT(doubled != NULL && warpline_result_take_tensor(result, 0) == NULL);
  warpline_result_free(result);
  warpline_program_free(program);

  warpline_array* array = NULL;
  ok(warpline_get(client, doubled, NULL, NULL, &array));
  for (int i = 0; i < kElements; ++i) EXPECT(((float*)warpline_array_view(array)->data)[i] == 2 * data[i]);
  warpline_array_free(array);
  float back[2 * kElements];
  int64_t every_second[] = {2 * kColumns, 2};
  const DLTensor to = matrix_of(back, shape, every_second);
  ok(warpline_get(client, doubled, &to, NULL, NULL));
  for (int i = 0; i < kElements; ++i) EXPECT(back[2 * i] == 2 * data[i]);

  ok(warpline_renew(client, warpline_tensor_id(tensor), 30, 10, NULL));
  warpline_tensor* attached = NULL;
  ok(warpline_attach(client, warpline_tensor_id(tensor), 0, 10, &attached));
  warpline_tensor_free(attached); /* it is somebody else's, and stays */
  ok(warpline_drop(client, warpline_tensor_id(tensor), 10));
  refused(warpline_drop(client, warpline_tensor_id(tensor), 10), WARPLINE_NOT_FOUND, "");
  warpline_tensor_free(tensor);

  /* A call may be the last that uses a tensor. */
  const warpline_input last = {"x", NULL, doubled, NULL};
  const char* freed[] = {warpline_tensor_id(doubled), "no id"};
  warpline_call_options options;
  memset(&options, 0, sizeof(options));
  options.size = sizeof(options);
  options.free_after = freed;
  options.free_after_count = 2;
  program = parse("scale(x, factor=2)");
  ok(warpline_run(client, program, &last, 1, NULL, 0, &options, &result));
  warpline_result_free(result);
  refused(warpline_run(client, program, &last, 1, NULL, 0, &options, &result), WARPLINE_NOT_FOUND, "");
  freed[1] = NULL;
  refused(warpline_run(client, program, &last, 1, NULL, 0, &options, &result), WARPLINE_INVALID_ARGUMENT,
          "free_after: no id 1");
  warpline_program_free(program);
  warpline_tensor_free(doubled);
}

static void bad_input_is_refused(warpline_client* client) {
  warpline_program* program = NULL;
  refused(warpline_program_parse("transpose(", &program), WARPLINE_INVALID_ARGUMENT, "column 11");
  refused(warpline_program_decode((const uint8_t*)"\xff\xff", 2, &program), WARPLINE_INVALID_ARGUMENT,
          "2 bytes");
  EXPECT(program == NULL);
  program = parse("transpose(x)");
  float data[kElements];
  fill(data, kElements);
  int64_t shape[] = {kRows, kColumns};
  DLTensor x = matrix_of(data, shape, NULL);
  warpline_input input = {"x", &x, NULL, NULL};
  warpline_result* result = NULL;
  x.dtype.bits = 24;
  refused(warpline_run(client, program, &input, 1, NULL, 0, NULL, &result), WARPLINE_INVALID_ARGUMENT,
          "input x: DLPack's type");
  x.dtype.bits = 32;
  x.ndim = 9;
  refused(warpline_run(client, program, &input, 1, NULL, 0, NULL, &result), WARPLINE_INVALID_ARGUMENT,
          "9 axes; the limit is 8");
  x.ndim = 2;
  x.device.device_type = (DLDeviceType)2;
  refused(warpline_run(client, program, &input, 1, NULL, 0, NULL, &result), WARPLINE_INVALID_ARGUMENT,
          "not host memory");
  x.device.device_type = kDLCPU;
  shape[0] = -1;
  refused(warpline_run(client, program, &input, 1, NULL, 0, NULL, &result), WARPLINE_INVALID_ARGUMENT,
          "size -1");
  shape[0] = kRows;
  input.id = "x";
  refused(warpline_run(client, program, &input, 1, NULL, 0, NULL, &result), WARPLINE_INVALID_ARGUMENT,
          "2 of array, tensor and id");
  input.id = NULL;
  warpline_call_options options;
  memset(&options, 0, sizeof(options));
  options.size = sizeof(options);
  options.timeout = -1;
  refused(warpline_run(client, program, &input, 1, NULL, 0, &options, &result), WARPLINE_INVALID_ARGUMENT,
          "");
  options.timeout = 0;
  options.request_id = "two\nlines";
  refused(warpline_run(client, program, &input, 1, NULL, 0, &options, &result), WARPLINE_INVALID_ARGUMENT,
          "request_id");
  options.request_id = NULL;
  int64_t twice[] = {0, 1}, far[] = {INT64_MAX, 1}, row[] = {1, kElements};
  const DLTensor same = matrix_of(data, shape, twice);
  warpline_destination there;
  memset(&there, 0, sizeof(there));
  there.out = &same;
  refused(warpline_run(client, program, &input, 1, &there, 1, NULL, &result), WARPLINE_INVALID_ARGUMENT,
          "destination 0: axis 0 has the stride 0");
  const DLTensor one_row = matrix_of(data, row, far); /* the stride of one element does not count */
  input.array = &one_row;
  ok(warpline_run(client, program, &input, 1, NULL, 0, NULL, &result));
  warpline_result_free(result);
  result = NULL;
  input.array = &x;
  options.size = 1;
  refused(warpline_run(client, program, &input, 1, NULL, 0, &options, &result), WARPLINE_INVALID_ARGUMENT,
          "options.size is 1");
  warpline_program_free(program);

  /* An error of the server has the fields. */
  program = parse("transpose(x, variant=nonesuch)");
  warpline_error* error = warpline_run(client, program, &input, 1, NULL, 0, NULL, &result);
  EXPECT(warpline_error_code(error) == WARPLINE_INVALID_ARGUMENT);
  EXPECT(warpline_error_answered(error) == 1);
  EXPECT(warpline_error_violation_count(error) == 1);
  EXPECT(strstr(warpline_error_violation_field(error, 0), "variant") != NULL);
  EXPECT(strlen(warpline_error_violation_text(error, 0)) > 0);
  EXPECT(strlen(warpline_error_request_id(error)) > 0);
  EXPECT(warpline_error_retry_seconds(error) < 0);
  warpline_error_free(error);
  EXPECT(result == NULL);
  warpline_program_free(program);
  EXPECT(warpline_error_code(NULL) == WARPLINE_OK);

  /* So has one of the server's rules, with which the library refuses a request itself. */
  program = parse("y = transpose(x, perm=[0, 0])");
  warpline_error* errors[2] = {warpline_run(client, program, &input, 1, NULL, 0, NULL, &result),
                               warpline_infer(program, &input, 1, &result)};
  for (int i = 0; i < 2; i++) {
    EXPECT(warpline_error_code(errors[i]) == WARPLINE_INVALID_ARGUMENT);
    EXPECT(warpline_error_answered(errors[i]) == 0);
    EXPECT(strcmp(warpline_error_message(errors[i]),
                  "program.steps[0].perm: step \"y\": axis 0 is named twice") == 0);
    EXPECT(warpline_error_violation_count(errors[i]) == 1);
    EXPECT(strcmp(warpline_error_violation_field(errors[i], 0), "program.steps[0].perm") == 0);
    EXPECT(strcmp(warpline_error_violation_text(errors[i], 0), warpline_error_message(errors[i])) == 0);
    warpline_error_free(errors[i]);
  }
  EXPECT(result == NULL);
  warpline_program_free(program);
}

static void calls_come_to_their_queue(warpline_client* client) {
  enum { kCalls = 200 };
  float data[kElements], results[kCalls][kElements];
  fill(data, kElements);
  int64_t shape[] = {kRows, kColumns}, turned[] = {kColumns, kRows};
  const DLTensor x = matrix_of(data, shape, NULL);
  const warpline_input input = {"x", &x, NULL, NULL};
  warpline_program* program = parse("transpose(x)");
  warpline_queue* queue = NULL;
  ok(warpline_queue_create(&queue));
  EXPECT(warpline_queue_next(queue, 0) == NULL);
  struct pollfd readable = {warpline_queue_descriptor(queue), POLLIN, 0};
  EXPECT(poll(&readable, 1, 0) == 0);
  DLTensor outs[kCalls];
  warpline_destination destinations[kCalls];
  memset(destinations, 0, sizeof(destinations));
  for (intptr_t i = 0; i < kCalls; ++i) {
    outs[i] = matrix_of(results[i], turned, NULL);
    destinations[i].out = &outs[i];
    ok(warpline_submit(client, program, &input, 1, &destinations[i], 1, NULL, queue, (void*)i, NULL));
  }
  char seen[kCalls] = {0};
  for (int i = 0; i < kCalls; ++i) {
    EXPECT(poll(&readable, 1, 60000) == 1);
    warpline_call* call = warpline_queue_next(queue, 0);
    EXPECT(call != NULL);
    const intptr_t number = (intptr_t)warpline_call_user_data(call);
    EXPECT(!seen[number]++);
    warpline_result* result = NULL;
    ok(warpline_call_finish(call, &result));
    EXPECT(results[number][1] == data[kColumns]);
    warpline_result_free(result);
  }
  EXPECT(poll(&readable, 1, 0) == 0);
  warpline_program* wrong = parse("transpose(x, perm=[0, 0])");
  ok(warpline_submit(client, wrong, &input, 1, NULL, 0, NULL, queue, NULL, NULL));
  warpline_call* call = warpline_queue_next(queue, 60);
  EXPECT(call != NULL);
  warpline_result* result = NULL;
  refused(warpline_call_finish(call, &result), WARPLINE_INVALID_ARGUMENT, "");
  warpline_queue_free(queue);
  warpline_program_free(wrong);
  warpline_program_free(program);
}

static void regions_are_used_in_place(warpline_client* client) {
  warpline_region* region = NULL;
  ok(warpline_region_open(client, 1 << 20, 10, &region));
  const int64_t shape[] = {kRows, kColumns};
  const DLDataType type = {kDLFloat, 32, 1};
  warpline_array* x = NULL;
  ok(warpline_region_allocate(region, type, 2, shape, &x));
  fill((float*)warpline_array_view(x)->data, kElements);
  const warpline_input input = {"x", warpline_array_view(x), NULL, NULL};
  warpline_destination there;
  memset(&there, 0, sizeof(there));
  there.region = region;
  warpline_program* program = parse("transpose(x)");
  warpline_result* result = NULL;
  ok(warpline_run(client, program, &input, 1, &there, 1, NULL, &result));
  warpline_array* y = warpline_result_take_array(result, 0);
  warpline_result_free(result);
  const char* begin = (const char*)warpline_array_view(x)->data;
  const char* at = (const char*)warpline_array_view(y)->data;
  EXPECT(at - begin < (1 << 20) && begin - at < (1 << 20)); /* in the same region */
  EXPECT(((const float*)at)[1] == (float)kColumns);
  const int64_t large[] = {1 << 20};
  warpline_array* none = NULL;
  refused(warpline_region_allocate(region, type, 1, large, &none), WARPLINE_RESOURCE_EXHAUSTED, "");
  warpline_region_free(region);
  warpline_array_free(x);
  warpline_array_free(y);
  warpline_program_free(program);
}

static void* run_often(void* client) {
  for (int i = 0; i < 20; ++i) transposes(client, "from a thread", kColumns, 1, 0);
  return NULL;
}

static void threads_share_a_client(warpline_client* client) {
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i) EXPECT(pthread_create(&threads[i], NULL, run_often, client) == 0);
  for (int i = 0; i < 8; ++i) EXPECT(pthread_join(threads[i], NULL) == 0);
}

static void count(void* told, size_t bytes, size_t total) {
  size_t* const sizes = told;
  sizes[0] = bytes;
  sizes[1] = total;
}

static void transfers_tell_how_far_they_are(warpline_client* client) {
  enum { kSize = 1 << 20 };
  float* const data = calloc(kSize, sizeof(float));
  int64_t shape[] = {1024, kSize / 1024};
  const DLTensor x = matrix_of(data, shape, NULL);
  size_t told[2] = {0, 0};
  warpline_transfer_options options;
  memset(&options, 0, sizeof(options));
  options.size = sizeof(options);
  options.progress = count;
  options.progress_data = told;
  warpline_tensor* tensor = NULL;
  ok(warpline_put(client, &x, &options, &tensor));
  EXPECT(told[0] == kSize * sizeof(float) && told[1] == kSize * sizeof(float));
  told[0] = told[1] = 0;
  ok(warpline_get(client, tensor, &x, &options, NULL));
  EXPECT(told[0] == kSize * sizeof(float) && told[1] == kSize * sizeof(float));
  /* A caller that was compiled before there was `progress` has other bytes there. */
  told[0] = 7;
  options.size = offsetof(warpline_transfer_options, progress);
  ok(warpline_get(client, tensor, &x, &options, NULL));
  EXPECT(told[0] == 7);
  warpline_tensor_free(tensor);
  free(data);
}

static void a_forked_child_gets_an_error(warpline_client* client) {
  float data[kElements];
  fill(data, kElements);
  int64_t shape[] = {kRows, kColumns};
  const DLTensor x = matrix_of(data, shape, NULL);
  warpline_tensor* tensor = NULL;
  ok(warpline_put(client, &x, NULL, &tensor));
  const pid_t child = fork();
  if (child == 0) {
    int32_t serving = 0;
    warpline_tensor* other = NULL;
    refused(warpline_client_serving(client, NULL, 10, &serving), WARPLINE_FAILED_PRECONDITION,
            "forked child");
    refused(warpline_put(client, &x, NULL, &other), WARPLINE_FAILED_PRECONDITION, "forked child");
    warpline_client* another = NULL;
    refused(warpline_client_create("unix:/none", NULL, &another), WARPLINE_FAILED_PRECONDITION,
            "forked child");
    warpline_tensor_free(tensor);
    warpline_client_free(client);
    _exit(0);
  }
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  warpline_array* array = NULL;
  ok(warpline_get(client, tensor, NULL, NULL, &array)); /* the child has dropped nothing */
  warpline_array_free(array);
  warpline_tensor_free(tensor);
}

static void clients_come_and_go(const char* address) {
  for (int i = 0; i < 200; ++i) {
    warpline_client* client = connect_to(address);
    int32_t serving = 0;
    ok(warpline_client_serving(client, NULL, 60, &serving));
    EXPECT(serving == 1);
    warpline_client_free(client);
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  EXPECT(sizeof(DLTensor) == 48 && sizeof(DLDataType) == 4);
  EXPECT(sizeof(warpline_client_options) == 96 && sizeof(warpline_call_options) == 72);
  EXPECT(sizeof(warpline_transfer_options) == 56 && sizeof(warpline_input) == 32);
  EXPECT(sizeof(warpline_destination) == 32 && sizeof(warpline_stage_seconds) == 40);
  warpline_client* client = connect_to(argv[1]);
  uint8_t* info = NULL;
  size_t size = 0;
  ok(warpline_client_info(client, 10, &info, &size));
  EXPECT(size > 0);
  warpline_bytes_free(info);
  arrays_may_have_any_strides(client);
  results_go_where_they_shall(client);
  tensors_stay_until_they_are_freed(client);
  transfers_tell_how_far_they_are(client);
  bad_input_is_refused(client);
  calls_come_to_their_queue(client);
  regions_are_used_in_place(client);
  threads_share_a_client(client);
  a_forked_child_gets_an_error(client);
  warpline_client_free(client);
  clients_come_and_go(argv[1]);
  warpline_client* nobody = connect_to("unix:/nonexistent/socket");
  int32_t serving = 0;
  refused(warpline_client_serving(nobody, NULL, 5, &serving), WARPLINE_UNAVAILABLE, "");
  warpline_client_free(nobody);
  warpline_client_free(NULL);
  warpline_error_free(NULL);
  printf("all passed\n");
  return 0;
}
