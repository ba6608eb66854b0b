/* Cafetiere's C interface: the only door for the JVM, Python and other languages.
 *
 * Every function returns 0 or an error code (cft_error); the text of the calling thread's last error
 * is cft_last_error(). Options are JSON objects in UTF-8; an unknown key is an error that names the
 * nearest known one. Nothing throws across this boundary, aborts or exits. Objects are handles; each
 * may be used by one thread at a time except where "any thread" is said. Text and bytes that a
 * function hands out belong to the caller, who frees them with cft_free().
 */
#ifndef CAFETIERE_C_API_H_
#define CAFETIERE_C_API_H_

#include <stddef.h>
#include <stdint.h>

#define CFT_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cft_error {
  CFT_OK = 0,
  CFT_INVALID_ARGUMENT = 1, /* the user must change something: never retry */
  CFT_NOT_FOUND = 2,
  CFT_IO = 3,
  CFT_UNAVAILABLE = 4, /* a peer is gone: a retry may succeed */
  CFT_TIMEOUT = 5,     /* a peer stayed silent: a retry may succeed */
  CFT_OUT_OF_MEMORY = 6,
  CFT_CANCELLED = 7,
  CFT_INTERNAL = 8
} cft_error;

typedef struct cft_rows cft_rows;
typedef struct cft_group cft_group;
typedef struct cft_trainer cft_trainer;
typedef struct cft_predictor cft_predictor;

/* Text of the calling thread's last error; "" if there was none. Valid until its next call. */
CFT_API const char* cft_last_error(void);
/* "0.1.0". Static. */
CFT_API const char* cft_version(void);
/* Frees text or bytes that this library handed out; NULL is fine. */
CFT_API void cft_free(void* memory);

/* ---- look before you leap ------------------------------------------------------------------ */

/* Parses and checks a solver and net without running them, for preflight and tools.
 * options: {"solver": TEXT, "net": TEXT, "phase": "TRAIN"|"TEST", "threads": N}; "solver" may be
 * absent when "net" is given; a solver's own net_param counts as the net.
 * out: {"name", "net_path": what the solver's "net:" says or "", "net_text": the net's text if none was
 *   given, "batch_size", "parameters": floats,
 *   "memory_bytes": predicted for one rank, "data_layer": {"name", "type", "tops": [{"name","shape"}],
 *   "source", "source_class"}, "outputs": [NAMES], "blobs": [{"name","shape"}],
 *   "solver": {"max_iter", "test_interval", "snapshot", "snapshot_prefix", "iter_size", ...}}. */
CFT_API int cft_describe(const char* options, char** out);

/* ---- rows ---------------------------------------------------------------------------------- */

/* A table of rows in native memory.
 * schema: {"columns": [{"name": "image", "type": "u8"|"i32"|"i64"|"f32"|"f64"|"string"}, ...],
 *          "id": column name or "" (then the identity is a hash of the row's bytes)}
 * A column holds any number of values of its type; how many a top needs is checked on append. */
CFT_API int cft_rows_create(const char* schema, cft_rows** out);
/* Appends `count` rows. Each row is its columns in schema order; each column is a uint32
 * (little-endian) number of payload bytes, then the payload. "string" is UTF-8. */
CFT_API int cft_rows_append(cft_rows* rows, int64_t count, const void* chunk, uint64_t bytes);
CFT_API int cft_rows_count(const cft_rows* rows, int64_t* out);
CFT_API void cft_rows_destroy(cft_rows* rows);

/* ---- groups -------------------------------------------------------------------------------- */

/* Opens this rank's end of a group and listens; no peer is contacted yet.
 * options: {"rank", "size", "bind": IP address to listen on and advertise,
 *   "secret": text all ranks share (never sent), "generation": text all ranks of this attempt share,
 *   "timeout_ms": silence of a peer that counts as its loss (default 6000)} */
CFT_API int cft_group_create(const char* options, cft_group** out);
/* "IP:port" to hand to the other ranks. */
CFT_API int cft_group_address(const cft_group* group, char** out);
/* addresses: JSON array of all ranks' addresses, by rank. Returns when all are connected. */
CFT_API int cft_group_connect(cft_group* group, const char* addresses);
/* Any thread: every pending and later call of any rank of this group fails within milliseconds. */
CFT_API void cft_group_cancel(cft_group* group);
CFT_API void cft_group_destroy(cft_group* group);

/* ---- training ------------------------------------------------------------------------------ */

/* Called on the thread that runs the trainer. Return 0 to go on, non-zero to stop the run with
 * CFT_CANCELLED. */
typedef struct cft_callbacks {
  void* context;
  /* One JSON object, on rank 0 only, about once a second and at the end:
   * {"event": "progress", "step", "max_iter", "epoch", "loss", "lr", "rows_per_s", "wait_data",
   *  "wait_comm", "seconds"} | {"event": "test", "step", "net", "outputs": {NAME: VALUE}} |
   * {"event": "log", "level", "text"} */
  int (*event)(void* context, const char* json);
  /* A complete checkpoint, on rank 0 only; may be NULL. json: {"step", "sha256": of the model}.
   * The bytes are valid during the call. */
  int (*checkpoint)(void* context, const char* json, const void* model, uint64_t model_bytes,
                    const void* state, uint64_t state_bytes);
} cft_callbacks;

/* options: {"solver": TEXT, "net": TEXT ("" = the solver's own), "rank", "size", "shards" (0 = size),
 *   "threads": of this rank, "seed" (used when the solver has no random_seed),
 *   "inputs": [{"top": "data", "column": "image"}, ...] (empty = tops by column name),
 *   "max_iter" (0 = the solver's), "checkpoint_every": steps (0 = the solver's snapshot),
 *   "events": path prefix or "" — writes PREFIX.jsonl and TensorBoard files beside it} */
CFT_API int cft_trainer_create(const char* options, const cft_callbacks* callbacks,
                               cft_trainer** out);
/* Weights alone (state NULL: fine-tuning) or weights and state (resume); caffemodel and solverstate
 * bytes. Before the run, on every rank alike. */
CFT_API int cft_trainer_restore(cft_trainer* trainer, const void* model, uint64_t model_bytes,
                                const void* state, uint64_t state_bytes);
/* Rows held out for the solver's test net, this rank's part of them; `rows` is emptied. Tested every
 * test_interval steps and at the end, over all rows (test_iter is ignored). Optional; before the
 * run, on every rank or on none. */
CFT_API int cft_trainer_validation(cft_trainer* trainer, cft_rows* rows);
/* Deals the rows of all ranks to the shards, then trains to max_iter. `group` is NULL when size is
 * 1; `rows` is emptied. Blocks; every rank must call it. */
CFT_API int cft_trainer_run(cft_trainer* trainer, cft_group* group, cft_rows* rows);
/* Any thread: the run stops with CFT_CANCELLED at its next step. */
CFT_API void cft_trainer_cancel(cft_trainer* trainer);
/* After a run: {"steps", "epochs", "rows_given", "rows_per_epoch": [..], "loss", "seconds",
 *   "rows_per_s", "sha256": of the model, "shards", "ranks", "peak_bytes"} */
CFT_API int cft_trainer_result(cft_trainer* trainer, char** out);
/* After a run: the weights as a caffemodel. */
CFT_API int cft_trainer_model(cft_trainer* trainer, void** out, uint64_t* bytes);
/* After a run: iteration and history as a solverstate. */
CFT_API int cft_trainer_state(cft_trainer* trainer, void** out, uint64_t* bytes);
CFT_API void cft_trainer_destroy(cft_trainer* trainer);

/* ---- prediction ---------------------------------------------------------------------------- */

/* options: {"net": TEXT, "schema": as for rows, "inputs": as for the trainer,
 *   "outputs": [blob names] (empty = the blobs that only losses and scores read),
 *   "batch": rows a pass (0 = the net's), "threads"}
 * Inputs that have no column (a label on a table without one) read as zero; layers that only serve
 * losses and scores are left out unless an output needs them. */
CFT_API int cft_predictor_create(const char* options, const void* model, uint64_t model_bytes,
                                 cft_predictor** out);
/* {"outputs": [{"name", "shape": without the batch axis, "size": floats a row}]} */
CFT_API int cft_predictor_describe(const cft_predictor* predictor, char** out);
/* Runs `count` rows (encoded as for cft_rows_append); outputs[i] receives count * size_i floats. */
CFT_API int cft_predictor_run(cft_predictor* predictor, int64_t count, const void* chunk,
                              uint64_t bytes, float* const* outputs);
CFT_API void cft_predictor_destroy(cft_predictor* predictor);

/* ---- reports ------------------------------------------------------------------------------- */

/* Renders a self-contained HTML page (inline SVG) from the events of a run.
 * events: JSONL text, one event a line; result: JSON object shown as the summary. */
CFT_API int cft_report(const char* events, const char* result, char** html);

#ifdef __cplusplus
}
#endif

#endif /* CAFETIERE_C_API_H_ */
