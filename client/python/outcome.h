/* A run for Python, which gives up the interpreter's lock once: each call of the library costs a hand-over of
 * the lock where several threads call. */
typedef struct {
  warpline_result* result; /* NULL if the elements are here */
  char* warning;           /* of warpline_client_take_warning */
  int32_t ndim;
  DLDataType dtype;
  int64_t shape[8];
  char elements[16384];
} warpline_python_outcome;

/* Does what warpline_run does. If `brief` is not 0, and the only result is an array that fits into
 * `elements`, it is copied there, and the result is freed. */
static warpline_error* warpline_python_run(warpline_client* client, const warpline_program* program,
                                           const warpline_input* inputs, size_t input_count,
                                           const warpline_destination* destinations, size_t destination_count,
                                           const warpline_call_options* options, int32_t brief,
                                           warpline_python_outcome* outcome) {
  warpline_result* result = NULL;
  warpline_error* error =
      warpline_run(client, program, inputs, input_count, destinations, destination_count, options, &result);
  outcome->result = result;
  outcome->warning = warpline_client_take_warning(client);
  if (error != NULL || brief == 0 || warpline_result_count(outcome->result) != 1) return error;
  const DLTensor* array = warpline_result_array(outcome->result, 0);
  if (array == NULL) return NULL;
  uint64_t bytes = array->dtype.bits / 8;
  for (int32_t i = 0; i < array->ndim; ++i) bytes *= (uint64_t)array->shape[i];
  if (bytes > sizeof(outcome->elements)) return NULL;
  outcome->ndim = array->ndim;
  outcome->dtype = array->dtype;
  for (int32_t i = 0; i < array->ndim; ++i) outcome->shape[i] = array->shape[i];
  const char* from = (const char*)array->data;
  for (uint64_t i = 0; i < bytes; ++i) outcome->elements[i] = from[i];
  warpline_result_free(outcome->result);
  outcome->result = NULL;
  return NULL;
}
