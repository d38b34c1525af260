/* The client of a warpline server in C99: what libwarpline.so.0 exports, for any language that can call C.
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
 * client/examples/c has a whole program.
 *
 * Errors: functions that can fail return NULL for success, else an error that the caller frees. What an
 * `out` argument points at is then unchanged.
 *
 * Threads: clients, programs, queues and regions may be used by several threads at a time; all else by one at
 * a time. Freeing is not using: free an object when no other thread uses it. NULL may be freed.
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

WARPLINE_EXPORT int32_t warpline_error_code(const warpline_error* error); /* of NULL: WARPLINE_OK */
/* The strings live as long as the error. None is NULL. */
WARPLINE_EXPORT const char* warpline_error_message(const warpline_error* error);
WARPLINE_EXPORT const char* warpline_error_request_id(const warpline_error* error); /* "": there is none */
/* 1 if the server answered; 0 if the error is gRPC's or the client's. */
WARPLINE_EXPORT int32_t warpline_error_answered(const warpline_error* error);
/* How often the call was made; 0 if that is not known. */
WARPLINE_EXPORT int32_t warpline_error_attempts(const warpline_error* error);
/* The seconds after which the server says that trying again can succeed; below 0: it does not say so. */
WARPLINE_EXPORT double warpline_error_retry_seconds(const warpline_error* error);
/* The fields of the request that the error is about, and what is wrong with each; `index` is below the count.
 */
WARPLINE_EXPORT size_t warpline_error_violation_count(const warpline_error* error);
WARPLINE_EXPORT const char* warpline_error_violation_field(const warpline_error* error, size_t index);
WARPLINE_EXPORT const char* warpline_error_violation_text(const warpline_error* error, size_t index);
WARPLINE_EXPORT void warpline_error_free(warpline_error* error);

/* --- Clients */

/* As 0.1.0. */
WARPLINE_EXPORT const char* warpline_version(void);

typedef struct warpline_client warpline_client;

/* The memory that is shared with a server on this host. */
enum {
  WARPLINE_SHARED_EXPLICIT = 0, /* only regions that the caller opens */
  /* Large ordinary arrays, too, where the server shares memory and there is room. Others go in messages. */
  WARPLINE_SHARED_AUTO = 1,
  WARPLINE_SHARED_ALWAYS = 2 /* the same, but it is an error if there is no room */
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
  int32_t max_retries;       /* of a call, after errors that another attempt may mend; 0: none */
  int32_t own_connection;    /* not 0: a connection that no other client of the process has */
  int32_t shared_memory;     /* one of WARPLINE_SHARED_... */
  uint64_t pool_bytes;       /* of all regions that the library opens for ordinary arrays; 0: 2 GiB */
  uint64_t share_from_bytes; /* ordinary arrays of fewer bytes travel in messages; 0: 128 KiB */
  /* Operands, or results, of so many bytes together travel in ranges over several connections, and need not
   * fit into a message; 0: 16 MiB. */
  uint64_t stream_from_bytes;
  int32_t channels; /* the number of these connections, at most 64; 0: as many as suit the size */
} warpline_client_options;

/* Makes a client, which connects at its first call. Target: "host:port", "unix:/path", or anything else that
 * gRPC resolves. `options` may be NULL. */
WARPLINE_EXPORT warpline_error* warpline_client_create(const char* target,
                                                       const warpline_client_options* options,
                                                       warpline_client** out);
/* Drops the tensors that there are handles of, which takes a few seconds at most. Calls in flight, and all
 * that come later, end with CANCELLED. */
WARPLINE_EXPORT void warpline_client_close(warpline_client* client);
/* The same, if it was not done before, and waits for calls that were submitted. Arrays of results keep their
 * memory. */
WARPLINE_EXPORT void warpline_client_free(warpline_client* client);

/* `timeout` of all calls is in seconds, finite and above zero. */

/* Asks grpc.health.v1 about one service, or the whole server (NULL). Writes 1 if it serves, else 0. */
WARPLINE_EXPORT warpline_error* warpline_client_serving(warpline_client* client, const char* service,
                                                        double timeout, int32_t* out);
/* Writes a serialised warpline.v1.GetInfoResponse. The caller frees it by warpline_bytes_free. */
WARPLINE_EXPORT warpline_error* warpline_client_info(warpline_client* client, double timeout, uint8_t** out,
                                                     size_t* size);
/* The same message as JSON, with the names of warpline.proto and with all fields. Not terminated. */
WARPLINE_EXPORT warpline_error* warpline_client_info_json(warpline_client* client, double timeout,
                                                          uint8_t** out, size_t* size);
WARPLINE_EXPORT void warpline_bytes_free(uint8_t* bytes);

/* Sets what calls of this thread ask about 20 times a second while they wait; NULL: nothing. If it does not
 * return 0, the call ends soon with CANCELLED. Languages ask here for signals. */
WARPLINE_EXPORT void warpline_set_interrupt(int32_t (*interrupt)(void*), void* data);

/* --- Programs */

/* An elementwise operation of maps: MapOp in warpline.proto says what it computes. */
typedef struct {
  const char* name; /* of the value of MapOp, in lower case and without MAP_OP_ */
  int operands;     /* number of its operands; 0 for constants */
  unsigned takes;   /* the data types of its operands: WARPLINE_TAKES_* added up */
} warpline_elementwise;

enum {
  WARPLINE_TAKES_BOOL = 1,
  WARPLINE_TAKES_INTEGERS = 2,
  WARPLINE_TAKES_FLOATS = 4, /* f16, bf16, f32, f64 */
  WARPLINE_TAKES_COMPLEX = 8,
  WARPLINE_TAKES_WIDE_FLOATS = 16 /* f32 and f64 */
};

/* The operation with the number `index` + 1 in MapOp. NULL if the library knows no such operation. */
WARPLINE_EXPORT const warpline_elementwise* warpline_elementwise_at(size_t index);

/* One step or several, as the server computes them. Immutable. */
typedef struct warpline_program warpline_program;

/* Parses an expression, as "gemm(a, b)" or "p = gemm(a, b, bias=v); reduce(p, op=sum, axes=[1])". Its last
 * call is the only output. warpline/program.h has the grammar. INVALID_ARGUMENT with the column of an error.
 */
WARPLINE_EXPORT warpline_error* warpline_program_parse(const char* text, warpline_program** out);
/* Takes a serialised warpline.v1.Program, which may have several outputs. */
WARPLINE_EXPORT warpline_error* warpline_program_decode(const uint8_t* bytes, size_t size,
                                                        warpline_program** out);
/* Takes a warpline.v1.Program as JSON, with the names of warpline.proto. */
WARPLINE_EXPORT warpline_error* warpline_program_from_json(const char* text, warpline_program** out);
WARPLINE_EXPORT size_t warpline_program_output_count(const warpline_program* program);
WARPLINE_EXPORT void warpline_program_free(warpline_program* program);

/* --- Arrays and tensors */

typedef struct warpline_array warpline_array;   /* memory of the library */
typedef struct warpline_tensor warpline_tensor; /* an array on the server */
typedef struct warpline_region warpline_region; /* memory shared with a server on this host */

/* The elements of an array, which may be written: dense. The description lives as long as the array. */
WARPLINE_EXPORT const DLTensor* warpline_array_view(const warpline_array* array);
WARPLINE_EXPORT void warpline_array_free(warpline_array* array);

/* The type and shape of a tensor; data is NULL. */
WARPLINE_EXPORT const DLTensor* warpline_tensor_type(const warpline_tensor* tensor);
/* A secret that gives access to the elements. Lives as long as the tensor. */
WARPLINE_EXPORT const char* warpline_tensor_id(const warpline_tensor* tensor);
WARPLINE_EXPORT int32_t warpline_tensor_device(const warpline_tensor* tensor);
/* The bytes that must still be put, and the seconds of the lease, when the server told of the tensor. */
WARPLINE_EXPORT uint64_t warpline_tensor_missing_bytes(const warpline_tensor* tensor);
WARPLINE_EXPORT double warpline_tensor_lease_seconds(const warpline_tensor* tensor);
/* Makes the tensor last as long as its lease: this handle neither renews nor drops it any more. */
WARPLINE_EXPORT void warpline_tensor_release(warpline_tensor* tensor);
/* Drops the tensor, without waiting, if this handle owns it, and no more then. */
WARPLINE_EXPORT void warpline_tensor_drop(warpline_tensor* tensor);
/* The same, and frees the handle. */
WARPLINE_EXPORT void warpline_tensor_free(warpline_tensor* tensor);

/* Opens a region of so many bytes, rounded up to whole pages. FAILED_PRECONDITION if the client has no region
 * socket, UNIMPLEMENTED if the server shares no memory, RESOURCE_EXHAUSTED if it is more than its limits. */
WARPLINE_EXPORT warpline_error* warpline_region_open(warpline_client* client, size_t bytes, double timeout,
                                                     warpline_region** out);
/* Allocates a dense array in the region, not initialised. The server reads and writes it where it lies: as an
 * input, and as the `out` of a destination. RESOURCE_EXHAUSTED if no gap is large enough. */
WARPLINE_EXPORT warpline_error* warpline_region_allocate(warpline_region* region, DLDataType dtype,
                                                         int32_t ndim, const int64_t* shape,
                                                         warpline_array** out);
/* Closes the region when its arrays have gone, too. */
WARPLINE_EXPORT void warpline_region_free(warpline_region* region);

/* Allocates a dense array, not initialised, in memory that is shared with the server, beyond pool_bytes.
 * Where none is shared, or none is left, it is ordinary memory; with WARPLINE_SHARED_ALWAYS that is an error.
 */
WARPLINE_EXPORT warpline_error* warpline_empty(warpline_client* client, DLDataType dtype, int32_t ndim,
                                               const int64_t* shape, double timeout, warpline_array** out);
/* 1 if the memory lies in a region that the client shares with its server, which then is not sent; else 0. */
WARPLINE_EXPORT int32_t warpline_client_shares(const warpline_client* client, const void* data, size_t bytes);
/* Takes the text of a warning that a user should see once, as that no memory can be shared; NULL if there is
 * none. The caller frees it by warpline_bytes_free. */
WARPLINE_EXPORT char* warpline_client_take_warning(warpline_client* client);

/* --- Calls */

/* An input of a program: one of array, tensor and id. */
typedef struct {
  const char* name;
  const DLTensor* array; /* not dense: sent as it lies where only rows are padded, else gathered by a copy */
  const warpline_tensor* tensor;
  const char* id; /* of a tensor that somebody has a handle of */
} warpline_input;

/* Where an output goes. All zero: new memory. */
typedef struct {
  const DLTensor* out;           /* of the output's type and shape, no element twice */
  const warpline_region* region; /* new memory in this region */
  int32_t keep;                  /* not 0: the output stays on the server */
  double ttl;                    /* seconds of the lease of what stays; 0: the server's default */
} warpline_destination;

typedef struct {
  size_t size;            /* sizeof(warpline_call_options) */
  double timeout;         /* 0: 60 s */
  const char* request_id; /* NULL: the server makes one */
  int32_t reproducible;   /* not 0: the same bits in each run on a device */
  /* Not 0: if the program is one step that reads the inputs in their order, errors name the inputs and the
   * options of the step ("a.shape", "perm"), not fields of the program. */
  int32_t one_step;
  /* The ids of tensors that the server drops when the call has succeeded, at most 256; operands may be among
   * them. Their handles are still to be freed, but do nothing else from then on. Ids of no tensor are
   * ignored. */
  const char* const* free_after;
  size_t free_after_count;
  int32_t report; /* not 0: the result names the implementation of each step */
  /* Called while large arrays of the call travel in ranges: with the bytes of them that have travelled so
   * far, which can fall when some are sent again, and with all that will. By one thread at a time, one of the
   * library's or the caller's. The call waits for it. NULL: nobody is told. */
  void (*progress)(void* progress_data, size_t bytes, size_t total);
  void* progress_data;
} warpline_call_options;

typedef struct warpline_result warpline_result;

/* Runs a program and waits. `destinations` is NULL, or has one for each output. Inputs must not change, and
 * `out` must not be used, until the call returns. After an error nothing writes to `out` any more.
 *
 * INVALID_ARGUMENT for arrays that are not in host memory, or of a type or rank that the API lacks; and, with
 * the fields at fault, where the program does not allow their type or shape. */
WARPLINE_EXPORT warpline_error* warpline_run(warpline_client* client, const warpline_program* program,
                                             const warpline_input* inputs, size_t input_count,
                                             const warpline_destination* destinations,
                                             size_t destination_count, const warpline_call_options* options,
                                             warpline_result** out);

/* Writes the types and shapes of a program's outputs: a result whose arrays have no data. Of the inputs only
 * types and shapes are read. If a server would refuse the program with them, returns the error that it would
 * give, with the field at fault; calls check the same before they send anything. UNIMPLEMENTED if the program
 * has a step of a newer API. */
WARPLINE_EXPORT warpline_error* warpline_infer(const warpline_program* program, const warpline_input* inputs,
                                               size_t input_count, warpline_result** out);

/* The outputs, in the order of the program. `index` is below the count. */
WARPLINE_EXPORT size_t warpline_result_count(const warpline_result* result);
/* The array of an output, as long as the result lives; NULL if it stays on the server. */
WARPLINE_EXPORT const DLTensor* warpline_result_array(const warpline_result* result, size_t index);
/* Takes over the array of an output, or its tensor; NULL if it has none. The view of an array stays where it
 * was. */
WARPLINE_EXPORT warpline_array* warpline_result_take_array(warpline_result* result, size_t index);
WARPLINE_EXPORT warpline_tensor* warpline_result_take_tensor(warpline_result* result, size_t index);
/* How the request was computed. Strings live as long as the result. */
WARPLINE_EXPORT const char* warpline_result_request_id(const warpline_result* result);
WARPLINE_EXPORT const char* warpline_result_backend(const warpline_result* result); /* "cuda" or "cpu" */
WARPLINE_EXPORT int32_t warpline_result_device(const warpline_result* result);
/* The implementation that ran each step: of a program only if the options ask for a report. "" beyond the
 * count. */
WARPLINE_EXPORT size_t warpline_result_variant_count(const warpline_result* result);
WARPLINE_EXPORT const char* warpline_result_variant(const warpline_result* result, size_t index);
/* The seconds of each stage on the server, as StageTimes in warpline.proto. */
typedef struct {
  double convert, admission, queue, stage, device;
} warpline_stage_seconds;
WARPLINE_EXPORT warpline_stage_seconds warpline_result_seconds(const warpline_result* result);
WARPLINE_EXPORT void warpline_result_free(warpline_result* result);

/* --- Calls that do not wait */

typedef struct warpline_call warpline_call;
typedef struct warpline_queue warpline_queue; /* of calls that have ended */

WARPLINE_EXPORT warpline_error* warpline_queue_create(warpline_queue** out);
/* A descriptor that is readable while the queue has calls, for poll and event loops. It belongs to the queue.
 */
WARPLINE_EXPORT int warpline_queue_descriptor(const warpline_queue* queue);
/* Takes the call that ended first; NULL if none has within so many seconds, at most 10^7. 0 does not wait. */
WARPLINE_EXPORT warpline_call* warpline_queue_next(warpline_queue* queue, double seconds);
/* No call that was submitted with it may be in flight or in the queue. */
WARPLINE_EXPORT void warpline_queue_free(warpline_queue* queue);

/* As warpline_run, but returns at once; the call comes to `queue` when it has ended, `user_data` with it.
 * The arrays, tensors and regions of inputs and destinations must stay as they are until then. `call` is
 * NULL, or gets the call, for warpline_call_cancel. */
WARPLINE_EXPORT warpline_error* warpline_submit(warpline_client* client, const warpline_program* program,
                                                const warpline_input* inputs, size_t input_count,
                                                const warpline_destination* destinations,
                                                size_t destination_count,
                                                const warpline_call_options* options, warpline_queue* queue,
                                                void* user_data, warpline_call** call);
/* Has the call end soon. It comes to its queue as others do. Not after warpline_call_finish. */
WARPLINE_EXPORT void warpline_call_cancel(warpline_call* call);
WARPLINE_EXPORT void* warpline_call_user_data(const warpline_call* call);
/* Takes the result of a call that has ended, or its error. Once. Frees the call. */
WARPLINE_EXPORT warpline_error* warpline_call_finish(warpline_call* call, warpline_result** out);

/* --- Resident tensors */

typedef struct {
  size_t size;            /* sizeof(warpline_transfer_options) */
  double timeout;         /* 0: 60 s */
  const char* request_id; /* NULL: the server makes one */
  int32_t channels;       /* connections at the same time, at most 64; 0: as many as suit the size */
  int32_t device;         /* of put: the device plus 1; 0: the one with the most memory left */
  double ttl;             /* of put: seconds of the lease; 0: the server's default */
} warpline_transfer_options;

/* Makes a tensor of an array of any size. `options` may be NULL. */
WARPLINE_EXPORT warpline_error* warpline_put(warpline_client* client, const DLTensor* array,
                                             const warpline_transfer_options* options, warpline_tensor** out);
/* Copies the elements of a tensor to `to`, an array of its type and shape, or if that is NULL to new memory,
 * which is written to `out`. One of the two is NULL. NOT_FOUND if there is no such tensor any more. */
WARPLINE_EXPORT warpline_error* warpline_get(warpline_client* client, const warpline_tensor* tensor,
                                             const DLTensor* to, const warpline_transfer_options* options,
                                             warpline_array** out);
/* Ends the lease of a tensor now. NOT_FOUND as above. */
WARPLINE_EXPORT warpline_error* warpline_drop(warpline_client* client, const char* id, double timeout);
/* Begins the lease anew, with another length if ttl is not 0. `out` is NULL, or gets what the server tells: a
 * handle that neither renews nor drops. */
WARPLINE_EXPORT warpline_error* warpline_renew(warpline_client* client, const char* id, double ttl,
                                               double timeout, warpline_tensor** out);
/* Lists the caller's tensors, whoever made them, in the order of their ids, as the tensors of a result.
 * These handles neither renew nor drop. `timeout` is for each page of 1000. */
WARPLINE_EXPORT warpline_error* warpline_list(warpline_client* client, double timeout, warpline_result** out);
/* A handle of a tensor of somebody else, which it does not drop. It renews the lease if `renew` is not 0. */
WARPLINE_EXPORT warpline_error* warpline_attach(warpline_client* client, const char* id, int32_t renew,
                                                double timeout, warpline_tensor** out);

#ifdef __cplusplus
}
#endif

#endif /* WARPLINE_WARPLINE_H_ */
