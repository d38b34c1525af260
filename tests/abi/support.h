/* Shared by the C programs of tests/abi. */
#ifndef TESTS_ABI_SUPPORT_H_
#define TESTS_ABI_SUPPORT_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "warpline/warpline.h"

#define EXPECT(condition)                                                       \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

static inline void ok(warpline_error* error) {
  if (error != NULL)
    fprintf(stderr, "error %d: %s\n", warpline_error_code(error), warpline_error_message(error));
  EXPECT(error == NULL);
}

static inline DLTensor matrix_of(float* data, int64_t* shape, int64_t* strides) {
  DLTensor matrix;
  memset(&matrix, 0, sizeof(matrix));
  matrix.data = data;
  matrix.device.device_type = kDLCPU;
  matrix.ndim = 2;
  matrix.dtype.code = kDLFloat;
  matrix.dtype.bits = 32;
  matrix.dtype.lanes = 1;
  matrix.shape = shape;
  matrix.strides = strides;
  return matrix;
}

#endif /* TESTS_ABI_SUPPORT_H_ */
