/* The client of a warpline server in C99, exported by libwarpline.so.0, for any language that can call C.
 *
 *   warpline_client* client = NULL;
 *   warpline_error* error = warpline_client_create("unix:/run/warpline.sock", NULL, &client);
 *   warpline_program* program = NULL;
 *   if (error == NULL) error = warpline_program_parse("transpose(x, perm=[1, 0])", &program);
 *   warpline_input input = {.name = "x", .array = &x};
 *   warpline_result* result = NULL;
 *   if (error == NULL) error = warpline_run(client, program, &input, 1, NULL, 0, NULL, &result);
 *   const DLTensor* y = warpline_result_array(result, 0);
 *
 * client/examples/c has a complete program.
 *
 * Errors: functions that can fail return NULL for success, else an error that the caller must free. After an
 * error, the targets of `out` arguments are unchanged.
 *
 * Threads: several threads may use a client, program, queue or region at the same time. Only one thread at a
 * time may use any other object. Free an object only when no other thread uses it. NULL may be freed.
 *
 * Processes: gRPC does not survive a fork. In a child of a process that has made a client, calls and new
 * clients return WARPLINE_FAILED_PRECONDITION, and freeing does nothing. A child that runs another program
 * (exec) is not affected.
 *
 * Stability: the library's name changes when a function or a structure changes in a way that programs notice.
 * Structures of options begin with their size and may grow at their end. Fields that are zero are defaults.
 */
#ifndef WARPLINE_WARPLINE_H_
#define WARPLINE_WARPLINE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WARPLINE_EXPORT __attribute__((visibility("default")))
#else
#define WARPLINE_EXPORT
#endif

/* Arrays are described by DLTensor of DLPack 1.x (https://dmlc.github.io/dlpack). A program that includes
 * dlpack/dlpack.h, too, includes it first. */
#ifndef DLPACK_DLPACK_H_
#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
  kDLCPU = 1,
  kDLCUDAHost = 3
} DLDeviceType;
typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;
typedef enum {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
  kDLFloat8_e4m3fn = 10,
  kDLFloat8_e5m2 = 12
} DLDataTypeCode;
typedef struct {
  uint8_t code;   /* a DLDataTypeCode */
  uint8_t bits;   /* of an element */
  uint16_t lanes; /* 1 */
} DLDataType;
typedef struct {
  void* data;
  DLDevice device; /* host memory: kDLCPU or kDLCUDAHost */
  int32_t ndim;    /* 0 to 8 */
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; NULL: dense, in row-major order */
  uint64_t byte_offset;
} DLTensor;
#endif

/* --- Errors */

/* The codes of gRPC. */
enum {
  WARPLINE_OK = 0,
  WARPLINE_CANCELLED = 1,
  WARPLINE_UNKNOWN = 2,
  WARPLINE_INVALID_ARGUMENT = 3,
  WARPLINE_DEADLINE_EXCEEDED = 4,
  WARPLINE_NOT_FOUND = 5,
  WARPLINE_ALREADY_EXISTS = 6,
  WARPLINE_PERMISSION_DENIED = 7,
  WARPLINE_RESOURCE_EXHAUSTED = 8,
  WARPLINE_FAILED_PRECONDITION = 9,
  WARPLINE_ABORTED = 10,
  WARPLINE_OUT_OF_RANGE = 11,
  WARPLINE_UNIMPLEMENTED = 12,
  WARPLINE_INTERNAL = 13,
  WARPLINE_UNAVAILABLE = 14,
  WARPLINE_DATA_LOSS = 15,
  WARPLINE_UNAUTHENTICATED = 16
};

typedef struct warpline_error warpline_error;

WARPLINE_EXPORT int32_t warpline_error_code(const warpline_error* error); /* NULL: WARPLINE_OK */
/* The strings live as long as the error, and are never NULL. */
WARPLINE_EXPORT const char* warpline_error_message(const warpline_error* error);
WARPLINE_EXPORT const char* warpline_error_request_id(const warpline_error* error); /* "": there is none */
/* 1 if the server answered; 0 if the error is gRPC's or the client's. */
WARPLINE_EXPORT int32_t warpline_error_answered(const warpline_error* error);
/* How often the call was made; 0 if that is not known. */
WARPLINE_EXPORT int32_t warpline_error_attempts(const warpline_error* error);
/* The seconds after which a retry can succeed, according to the server; below 0: the server gave none. */
WARPLINE_EXPORT double warpline_error_retry_seconds(const warpline_error* error);
/* The invalid fields of the request, and what is wrong with each; `index` must be below the count. */
WARPLINE_EXPORT size_t warpline_error_violation_count(const warpline_error* error);
WARPLINE_EXPORT const char* warpline_error_violation_field(const warpline_error* error, size_t index);
WARPLINE_EXPORT const char* warpline_error_violation_text(const warpline_error* error, size_t index);
WARPLINE_EXPORT void warpline_error_free(warpline_error* error);

/* --- Clients */

/* Returns the version of the library, such as "0.1.0". */
WARPLINE_EXPORT const char* warpline_version(void);

typedef struct warpline_client warpline_client;

/* Which memory is shared with a server on this host. */
enum {
  WARPLINE_SHARED_EXPLICIT = 0, /* only regions that the caller opens */
  /* Also large ordinary arrays, if the server shares memory and has room. Other arrays travel in messages. */
  WARPLINE_SHARED_AUTO = 1,
  WARPLINE_SHARED_ALWAYS = 2 /* same, but it is an error if there is no room */
};

typedef struct {
  size_t size; /* sizeof(warpline_client_options) */
  /* Paths of PEM files: the CAs that may have signed the server's certificate (NULL: no TLS), and the
   * client's certificate and key. */
  const char* tls_ca;
  const char* tls_cert;
  const char* tls_key;
  const char* token;         /* sent with every call; NULL: none */
  const char* region_socket; /* NULL: PATH.regions for a target unix:PATH */
  int32_t max_retries;       /* of a call, after errors that a retry may fix; 0: none */
  int32_t own_connection;    /* not 0: do not share a connection with other clients of the process */
  int32_t shared_memory;     /* one of WARPLINE_SHARED_... */
  uint64_t pool_bytes;       /* of all regions that the library opens for ordinary arrays; 0: 2 GiB */
  uint64_t share_from_bytes; /* ordinary arrays of fewer bytes travel in messages; 0: 128 KiB */
  /* Operands, or results, whose total size is at least this travel in ranges over several connections, and
   * need not fit into a message; 0: 16 MiB. */
  uint64_t stream_from_bytes;
  int32_t channels; /* the number of these connections, at most 64; 0: chosen by size */
} warpline_client_options;

/* Makes a client, which connects at its first call. Target: "host:port", "unix:/path", or anything else that
 * gRPC resolves. `options` may be NULL. */
WARPLINE_EXPORT warpline_error* warpline_client_create(const char* target,
                                                       const warpline_client_options* options,
                                                       warpline_client** out);
/* Drops the tensors that still have handles, which takes at most a few seconds. Calls in flight and all later
 * calls end with CANCELLED. */
WARPLINE_EXPORT void warpline_client_close(warpline_client* client);
/* Closes the client if it is not closed yet, waits for submitted calls, and frees the client. Arrays of
 * results keep their memory. */
WARPLINE_EXPORT void warpline_client_free(warpline_client* client);

/* `timeout` of all calls is in seconds, finite and above zero. */

/* Asks grpc.health.v1 about one service, or the whole server (NULL). Writes 1 if it is SERVING, else 0. */
WARPLINE_EXPORT warpline_error* warpline_client_serving(warpline_client* client, const char* service,
                                                        double timeout, int32_t* out);
/* Writes a serialised warpline.v1.GetInfoResponse. The caller frees it with warpline_bytes_free. */
WARPLINE_EXPORT warpline_error* warpline_client_info(warpline_client* client, double timeout, uint8_t** out,
                                                     size_t* size);
/* Writes the same message as JSON, with the names in warpline.proto and all fields. It has no final NUL. */
WARPLINE_EXPORT warpline_error* warpline_client_info_json(warpline_client* client, double timeout,
                                                          uint8_t** out, size_t* size);
WARPLINE_EXPORT void warpline_bytes_free(uint8_t* bytes);

/* Sets a function that waiting calls on this thread call about 20 times a second; NULL: none. If it does not
 * return 0, the call soon ends with CANCELLED. Bindings of other languages check for signals here. */
WARPLINE_EXPORT void warpline_set_interrupt(int32_t (*interrupt)(void*), void* data);

/* --- Programs */

/* An elementwise operation of maps. MapOp in warpline.proto says what it computes. */
typedef struct {
  const char* name; /* the name in MapOp, in lower case and without MAP_OP_ */
  int operands;     /* number of its operands; 0 for constants */
  unsigned takes;   /* the data types of its operands: a sum of WARPLINE_TAKES_* */
} warpline_elementwise;

enum {
  WARPLINE_TAKES_BOOL = 1,
  WARPLINE_TAKES_INTEGERS = 2,
  WARPLINE_TAKES_FLOATS = 4, /* f16, bf16, f32, f64 */
  WARPLINE_TAKES_COMPLEX = 8,
  WARPLINE_TAKES_WIDE_FLOATS = 16 /* f32 and f64 */
};

/* Returns the operation with the number `index` + 1 in MapOp; NULL if there is none. */
WARPLINE_EXPORT const warpline_elementwise* warpline_elementwise_at(size_t index);

/* One or more steps that the server computes. Immutable. */
typedef struct warpline_program warpline_program;

/* Parses an expression, such as "gemm(a, b)" or "p = gemm(a, b, bias=v); reduce(p, op=sum, axes=[1])". Its
 * last call is the only output. warpline/program.h has the grammar. Errors are INVALID_ARGUMENT, with the
 * column. */
WARPLINE_EXPORT warpline_error* warpline_program_parse(const char* text, warpline_program** out);
/* Makes a program from a serialised warpline.v1.Program, which may have several outputs. */
WARPLINE_EXPORT warpline_error* warpline_program_decode(const uint8_t* bytes, size_t size,
                                                        warpline_program** out);
/* Makes a program from a warpline.v1.Program as JSON, with the names in warpline.proto. */
WARPLINE_EXPORT warpline_error* warpline_program_from_json(const char* text, warpline_program** out);
WARPLINE_EXPORT size_t warpline_program_output_count(const warpline_program* program);
WARPLINE_EXPORT void warpline_program_free(warpline_program* program);

/* --- Arrays and tensors */

typedef struct warpline_array warpline_array;   /* memory of the library */
typedef struct warpline_tensor warpline_tensor; /* an array on the server */
typedef struct warpline_region warpline_region; /* memory shared with a server on this host */

/* Returns a description of the dense array. Its elements may be written. It lives as long as the array. */
WARPLINE_EXPORT const DLTensor* warpline_array_view(const warpline_array* array);
WARPLINE_EXPORT void warpline_array_free(warpline_array* array);

/* The type and shape of a tensor; data is NULL. */
WARPLINE_EXPORT const DLTensor* warpline_tensor_type(const warpline_tensor* tensor);
/* A secret that gives access to the elements. Lives as long as the tensor. */
WARPLINE_EXPORT const char* warpline_tensor_id(const warpline_tensor* tensor);
WARPLINE_EXPORT int32_t warpline_tensor_device(const warpline_tensor* tensor);
/* The bytes that must still be put, and the seconds of the lease, as the server last reported them. */
WARPLINE_EXPORT uint64_t warpline_tensor_missing_bytes(const warpline_tensor* tensor);
WARPLINE_EXPORT double warpline_tensor_lease_seconds(const warpline_tensor* tensor);
/* Detaches the handle: it no longer renews or drops the tensor, which then lasts as long as its lease. */
WARPLINE_EXPORT void warpline_tensor_release(warpline_tensor* tensor);
/* Drops the tensor without waiting, if this handle owns it. Later drops do nothing. */
WARPLINE_EXPORT void warpline_tensor_drop(warpline_tensor* tensor);
/* Same, and frees the handle. */
WARPLINE_EXPORT void warpline_tensor_free(warpline_tensor* tensor);

/* Opens a region of `bytes` bytes, rounded up to whole pages. FAILED_PRECONDITION if the client has no region
 * socket; UNIMPLEMENTED if the server shares no memory; RESOURCE_EXHAUSTED if `bytes` is above its limits. */
WARPLINE_EXPORT warpline_error* warpline_region_open(warpline_client* client, size_t bytes, double timeout,
                                                     warpline_region** out);
/* Allocates a dense array in the region, not initialised. The server reads it in place as an input, and
 * writes it in place as the `out` of a destination. RESOURCE_EXHAUSTED if no gap is large enough. */
WARPLINE_EXPORT warpline_error* warpline_region_allocate(warpline_region* region, DLDataType dtype,
                                                         int32_t ndim, const int64_t* shape,
                                                         warpline_array** out);
/* Frees the handle. The region is closed once its arrays are freed too. */
WARPLINE_EXPORT void warpline_region_free(warpline_region* region);

/* Allocates a dense array, not initialised, in memory that is shared with the server. It does not count
 * against pool_bytes. If the server shares no memory, or has none left, it is ordinary memory; with
 * WARPLINE_SHARED_ALWAYS that is an error. */
WARPLINE_EXPORT warpline_error* warpline_empty(warpline_client* client, DLDataType dtype, int32_t ndim,
                                               const int64_t* shape, double timeout, warpline_array** out);
/* Returns 1 if the memory lies in a region shared with the server, so that it is not sent; else 0. */
WARPLINE_EXPORT int32_t warpline_client_shares(const warpline_client* client, const void* data, size_t bytes);
/* Returns a warning that the user should see once, for example that no memory can be shared; NULL if there is
 * none. The caller frees it with warpline_bytes_free. */
WARPLINE_EXPORT char* warpline_client_take_warning(warpline_client* client);

/* --- Calls */

/* An input of a program. Exactly one of array, tensor and id must be set. */
typedef struct {
  const char* name;
  const DLTensor* array; /* need not be dense: copied first if more than its rows is padded */
  const warpline_tensor* tensor;
  const char* id; /* of a tensor; some handle must keep it alive */
} warpline_input;

/* The destination of an output. All zero: new memory. */
typedef struct {
  const DLTensor* out;           /* must have the output's type and shape, and no overlapping elements */
  const warpline_region* region; /* new memory in this region */
  int32_t keep;                  /* not 0: the output stays on the server */
  double ttl;                    /* with keep: seconds of the lease; 0: the server's default */
} warpline_destination;

typedef struct {
  size_t size;            /* sizeof(warpline_call_options) */
  double timeout;         /* 0: 60 s */
  const char* request_id; /* NULL: the server makes one */
  int32_t reproducible;   /* not 0: the same bits in each run on a device */
  /* Not 0: if the program has only one step, which reads the inputs in their order, errors name the inputs
   * and the options of the step ("a.shape", "perm") instead of fields of the program. */
  int32_t one_step;
  /* The ids of tensors that the server drops when the call has succeeded, at most 256; operands may be among
   * them. Their handles must still be freed, but do nothing else from then on. Unknown ids are ignored. */
  const char* const* free_after;
  size_t free_after_count;
  int32_t report; /* not 0: the result names the implementation of each step */
  /* Called while large arrays of the call travel in ranges, with the bytes transferred so far and the total.
   * The first number can decrease when bytes are sent again. Only one thread calls it at a time: one of the
   * library's or the caller's. The call waits for it. NULL: no reports. */
  void (*progress)(void* progress_data, size_t bytes, size_t total);
  void* progress_data;
} warpline_call_options;

typedef struct warpline_result warpline_result;

/* Runs a program and waits. `destinations` is NULL, or has one for each output. Inputs must not change, and
 * `out` must not be used, until the call returns. After an error, `out` is no longer written.
 *
 * INVALID_ARGUMENT for arrays that are not in host memory, or have a type or rank that the API lacks. Also,
 * with the invalid fields, if the program does not allow their type or shape. */
WARPLINE_EXPORT warpline_error* warpline_run(warpline_client* client, const warpline_program* program,
                                             const warpline_input* inputs, size_t input_count,
                                             const warpline_destination* destinations,
                                             size_t destination_count, const warpline_call_options* options,
                                             warpline_result** out);

/* Writes the types and shapes of a program's outputs: a result whose arrays have no data. Reads only the
 * types and shapes of the inputs. If a server would refuse the program with these inputs, returns the
 * server's error, with the invalid field. Calls make the same checks before they send anything. UNIMPLEMENTED
 * if the program has a step of a newer API. */
WARPLINE_EXPORT warpline_error* warpline_infer(const warpline_program* program, const warpline_input* inputs,
                                               size_t input_count, warpline_result** out);

/* The outputs, in the order of the program. `index` is below the count. */
WARPLINE_EXPORT size_t warpline_result_count(const warpline_result* result);
/* The array of an output, as long as the result lives; NULL if it stays on the server. */
WARPLINE_EXPORT const DLTensor* warpline_result_array(const warpline_result* result, size_t index);
/* Takes ownership of the array of an output, or of its tensor; NULL if there is none. The view of the array
 * stays valid. */
WARPLINE_EXPORT warpline_array* warpline_result_take_array(warpline_result* result, size_t index);
WARPLINE_EXPORT warpline_tensor* warpline_result_take_tensor(warpline_result* result, size_t index);
/* How the request was computed. Strings live as long as the result. */
WARPLINE_EXPORT const char* warpline_result_request_id(const warpline_result* result);
WARPLINE_EXPORT const char* warpline_result_backend(const warpline_result* result); /* "cuda" or "cpu" */
WARPLINE_EXPORT int32_t warpline_result_device(const warpline_result* result);
/* The implementation that ran each step. For a program with several steps, only if the options ask for a
 * report. "" if `index` is beyond the count. */
WARPLINE_EXPORT size_t warpline_result_variant_count(const warpline_result* result);
WARPLINE_EXPORT const char* warpline_result_variant(const warpline_result* result, size_t index);
/* The seconds of each stage on the server: see StageTimes in warpline.proto. */
typedef struct {
  double convert, admission, queue, stage, device;
} warpline_stage_seconds;
WARPLINE_EXPORT warpline_stage_seconds warpline_result_seconds(const warpline_result* result);
WARPLINE_EXPORT void warpline_result_free(warpline_result* result);

/* --- Asynchronous calls */

typedef struct warpline_call warpline_call;
typedef struct warpline_queue warpline_queue; /* finished calls */

WARPLINE_EXPORT warpline_error* warpline_queue_create(warpline_queue** out);
/* Returns a descriptor that is readable while the queue has calls, for poll and event loops. The queue owns
 * it. */
WARPLINE_EXPORT int warpline_queue_descriptor(const warpline_queue* queue);
/* Takes the call that ended first. NULL if no call ends within `seconds`, at most 10^7. 0 does not wait. */
WARPLINE_EXPORT warpline_call* warpline_queue_next(warpline_queue* queue, double seconds);
/* Frees the queue. Calls submitted with it must not be in flight or in the queue. */
WARPLINE_EXPORT void warpline_queue_free(warpline_queue* queue);

/* Same as warpline_run, but returns at once. When the call has ended, it appears in `queue`, with
 * `user_data`. The arrays, tensors and regions of inputs and destinations must stay unchanged until then. If
 * `call` is not NULL, it gets the call, for warpline_call_cancel. */
WARPLINE_EXPORT warpline_error* warpline_submit(warpline_client* client, const warpline_program* program,
                                                const warpline_input* inputs, size_t input_count,
                                                const warpline_destination* destinations,
                                                size_t destination_count,
                                                const warpline_call_options* options, warpline_queue* queue,
                                                void* user_data, warpline_call** call);
/* Makes the call end soon. It still appears in its queue. Must not be called after warpline_call_finish. */
WARPLINE_EXPORT void warpline_call_cancel(warpline_call* call);
WARPLINE_EXPORT void* warpline_call_user_data(const warpline_call* call);
/* Takes the result or the error of a call that has ended, and frees the call. Call it only once. */
WARPLINE_EXPORT warpline_error* warpline_call_finish(warpline_call* call, warpline_result** out);

/* --- Resident tensors */

typedef struct {
  size_t size;            /* sizeof(warpline_transfer_options) */
  double timeout;         /* 0: 60 s */
  const char* request_id; /* NULL: the server makes one */
  int32_t channels;       /* connections at the same time, at most 64; 0: chosen by size */
  int32_t device;         /* only for put: the device plus 1; 0: the device with the most memory left */
  double ttl;             /* only for put: seconds of the lease; 0: the server's default */
  /* The same function as in warpline_call_options. The total is the size of the array. It is not called where
   * memory is shared. */
  void (*progress)(void* progress_data, size_t bytes, size_t total);
  void* progress_data;
} warpline_transfer_options;

/* Makes a tensor from an array of any size. `options` may be NULL. */
WARPLINE_EXPORT warpline_error* warpline_put(warpline_client* client, const DLTensor* array,
                                             const warpline_transfer_options* options, warpline_tensor** out);
/* Copies the elements of a tensor to `to`, an array of the same type and shape. If `to` is NULL, copies them
 * to a new array, which is returned in `out`. One of the two must be NULL. NOT_FOUND if the tensor no longer
 * exists. */
WARPLINE_EXPORT warpline_error* warpline_get(warpline_client* client, const warpline_tensor* tensor,
                                             const DLTensor* to, const warpline_transfer_options* options,
                                             warpline_array** out);
/* Ends the lease of a tensor now. NOT_FOUND as for warpline_get. */
WARPLINE_EXPORT warpline_error* warpline_drop(warpline_client* client, const char* id, double timeout);
/* Renews the lease, with another length if ttl is not 0. If `out` is not NULL, it gets a handle with the
 * server's information, which neither renews nor drops the tensor. */
WARPLINE_EXPORT warpline_error* warpline_renew(warpline_client* client, const char* id, double ttl,
                                               double timeout, warpline_tensor** out);
/* Lists the caller's tensors, including those made by its other clients, in the order of their ids, as the
 * tensors of a result. These handles neither renew nor drop tensors. `timeout` is for each page of 1000. */
WARPLINE_EXPORT warpline_error* warpline_list(warpline_client* client, double timeout, warpline_result** out);
/* Makes a handle of a tensor that somebody else owns. It does not drop the tensor. It renews the lease if
 * `renew` is not 0. */
WARPLINE_EXPORT warpline_error* warpline_attach(warpline_client* client, const char* id, int32_t renew,
                                                double timeout, warpline_tensor** out);

#ifdef __cplusplus
}
#endif

#endif /* WARPLINE_WARPLINE_H_ */
