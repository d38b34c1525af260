/* A client in C99: transposes a matrix, runs a program of two steps, and keeps an array on the server.
 *
 *   cc -std=c99 -I client/include client/examples/c/example.c -L build/release/lib -lwarpline -o example
 *   LD_LIBRARY_PATH=build/release/lib ./example unix:/tmp/warpline.sock */
#include <stdio.h>
#include <stdlib.h>

#include "warpline/warpline.h"

static void check(warpline_error* error) {
  if (error == NULL) return;
  fprintf(stderr, "error %d: %s\n", (int)warpline_error_code(error), warpline_error_message(error));
  for (size_t i = 0; i < warpline_error_violation_count(error); ++i) {
    fprintf(stderr, "  %s: %s\n", warpline_error_violation_field(error, i),
            warpline_error_violation_text(error, i));
  }
  warpline_error_free(error);
  exit(1);
}

/* Runs an expression of x. The caller frees the result. */
static warpline_result* run(warpline_client* client, const char* text, warpline_input x) {
  warpline_program* program = NULL;
  warpline_result* result = NULL;
  check(warpline_program_parse(text, &program));
  x.name = "x";
  const warpline_call_options options = {.size = sizeof(options), .report = 1};
  check(warpline_run(client, program, &x, 1, NULL, 0, &options, &result));
  warpline_program_free(program);
  printf("%s, by %s of %s:", text, warpline_result_variant(result, 0), warpline_result_backend(result));
  return result;
}

static void print(const DLTensor* array) {
  int64_t count = 1;
  for (int32_t i = 0; i < array->ndim; ++i) count *= array->shape[i];
  for (int64_t i = 0; i < count; ++i) printf(" %g", (double)((const float*)array->data)[i]);
  printf("\n");
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s ADDRESS\n", argv[0]);
    return 2;
  }
  warpline_client* client = NULL;
  check(warpline_client_create(argv[1], NULL, &client));

  float elements[] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {2, 3};
  const DLTensor matrix = {.data = elements,
                           .device = {.device_type = kDLCPU, .device_id = 0},
                           .ndim = 2,
                           .dtype = {.code = kDLFloat, .bits = 32, .lanes = 1},
                           .shape = shape};
  warpline_result* result = run(client, "transpose(x)", (warpline_input){.array = &matrix});
  print(warpline_result_array(result, 0));
  warpline_result_free(result);

  warpline_tensor* tensor = NULL;
  check(warpline_put(client, &matrix, NULL, &tensor));
  result = run(client, "reduce(scale(x, factor=10), op=sum, axes=[0])", (warpline_input){.tensor = tensor});
  print(warpline_result_array(result, 0));
  warpline_result_free(result);

  warpline_array* copy = NULL;
  check(warpline_get(client, tensor, NULL, NULL, &copy));
  printf("what was put:");
  print(warpline_array_view(copy));
  warpline_array_free(copy);
  warpline_tensor_free(tensor);
  warpline_client_free(client);
  return 0;
}
