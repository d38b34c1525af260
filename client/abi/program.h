// A program of the C interface.
#ifndef WARPLINE_CLIENT_ABI_PROGRAM_H_
#define WARPLINE_CLIENT_ABI_PROGRAM_H_

#include "warpline/v1/warpline.pb.h"
#include "warpline/warpline.h"

struct warpline_program {
  const warpline::v1::Program program;
};

#endif  // WARPLINE_CLIENT_ABI_PROGRAM_H_
