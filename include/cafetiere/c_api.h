/* SPDX-License-Identifier: Apache-2.0 */
/* Cafetiere's C interface, which the JVM, Python and other languages use.
 *
 * Every function returns 0 or an error code (cft_error); cft_last_error() gives the text of the calling
 * thread's last error. Options are JSON objects in UTF-8; an unknown key is an error that names the
 * nearest known one. No function throws across this boundary, aborts or exits. Objects are handles; each
 * may be used by one thread at a time unless a comment says "any thread". Text and bytes that a
 * function returns belong to the caller, who frees them with cft_free().
 *
 * A struct begins with `struct_size`, which the caller sets to the struct's size, as in
 *   cft_callbacks callbacks = {.struct_size = sizeof callbacks, .event = show};
 * Later versions may append fields. If the struct is smaller, because it is from an earlier version, the
 * missing fields count as NULL; if it is larger, the fields that this library does not know must be zero.
 * A size that no version has, such as 0, is an error.
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

typedef struct cft_row_budget cft_row_budget;
typedef struct cft_rows cft_rows;
typedef struct cft_group cft_group;
typedef struct cft_trainer cft_trainer;
typedef struct cft_predictor cft_predictor;
typedef struct cft_net cft_net;
typedef struct cft_solver cft_solver;
typedef struct cft_memory cft_memory;
typedef struct cft_transformer cft_transformer;

/* Text of the calling thread's last error; "" if there was none. Valid until its next call. */
CFT_API const char* cft_last_error(void);
/* The version, as "major.minor.patch". Static. */
CFT_API const char* cft_version(void);
/* Frees text or bytes that this library returned; NULL is allowed. */
CFT_API void cft_free(void* memory);

/* Counts the additions to this interface; nothing is removed or changed. A program compiled with one
 * number works with every library whose cft_api_version() is at least that number. */
#define CFT_API_VERSION 1
CFT_API int cft_api_version(void);

/* Receives all log messages of an object, as in Caffe's log. level: 0 info, 1 warning, 2 error; text
 * has no line end and is valid during the call. Called on whichever thread works for the
 * object, one message at a time; it must not call a function of that object. */
typedef void (*cft_log)(void* context, int level, const char* text);

/* The instruction set that this process generates code for, which decides the order of sums: "amx",
 * "avx512_bf16", "avx512", "avx2", "avx" or "generic"; float32 is the same in the first three. */
CFT_API const char* cft_instruction_set(void);
/* Lowers it for the life of the process, so that ranks on different machines form the same sums.
 * Call it before the process trains or predicts. */
CFT_API int cft_use_instruction_set(const char* name);

/* The command line `cafetiere`: runs the command that arguments[1..count) name, as Caffe's tool does,
 * and returns the exit status. Writes to the standard streams and handles signals while a training
 * runs. arguments[0] is the program's name. */
CFT_API int cft_main(int count, const char* const* arguments);

/* ---- validation ---------------------------------------------------------------------------  */

/* Parses and checks a solver and net without running them, for preflight checks and tools. Allocates none
 * of the memory that it predicts.
 * options: {"solver": TEXT, "net": TEXT, "phase": "TRAIN"|"TEST", "solver_fields", "sync" and
 * "deepspark": as for the trainer}; "solver" may be absent when "net" is given. Without "net" the net is
 * the one that the solver trains or, in phase TEST, the first of the solver's own test nets.
 * The solver's train_state or first test_state counts as in training.
 * "max_iter": as for the trainer; needed by a policy such as "cosine".
 * "rank_shards": shards of the rank that memory is predicted for; default 1.
 * "sources": 1 asks only for {"sources": [{"name", "type", "tops", "roles": of the tops, as below,
 * "rows": whether a table may replace its files, and for a layer that reads files "source", "backend",
 * "root_folder", "channels", "height",
 * "width"}]}: the layers that are fed from outside, whether or not their shapes are known here.
 * "rows": {TOP: {"shape": [SIZES of a row], "encoded": whether the column holds image files}} replaces
 * layers that read files with layers that are fed from rows of a table; it may be empty.
 * out: {"name", "rows_net_text": only with "net" and "rows", the net after that change; "net_path": what
 *   the solver's "net:" says or "", "net_text": the net's text, in phase TEST with the level and stages
 *   of test_state inside, for the predictor; if no net was given, "solver_text": the solver with all its
 *   nets inside; "batch_size", "parameters": floats, "memory_bytes": predicted for a rank among others and "memory_alone_bytes" for one alone,
 *   "flops_forward", "flops_backward", "pass_bytes": operations of a pass over a batch, where a
 *   multiply-add counts as two, and bytes of the buffers that its steps read and write, "data_layer":
 *   {"name", "type": of the layer with the features, "tops": of all data layers, in the net's order
 *   [{"name", "layer",
 *   "role": "features"|"label"|"", "batch": rows, "shape", "classes": labels that losses and accuracies
 *   take from it must be below this, 0 if there are none,
 *   "ignore_label": only if there is one, "column": of CoSData and TableData, "columns" and their
 *   "kinds": of a top of TableData}], "source", "dataframe_format",
 *   "dataframe_column_select", "source_class", "others": [the other data layers, with the same
 *   fields except "tops"]}, "outputs": [NAMES], "predictions": [NAMES of the outputs of a predictor that
 *   is not told which],
 *   "blobs": [{"name","shape"}],
 *   "solver": {"max_iter", "test_interval", "snapshot", "snapshot_prefix",
 *   "snapshot_format": "HDF5"|"BINARYPROTO", "iter_size",
 *   "has_test_nets": besides the training net, "has_test_state", "solver_mode": "GPU" if the solver says
 *   so, ...}}. */
CFT_API int cft_describe(const char* options, char** out);

/* The text that `cafetiere explain` prints: layers, the steps that they are
 * compiled to, with reasons, and the memory that training takes. Compiles nothing.
 * options: {"solver", "net", "sync", "deepspark": as for cft_describe; "phase": "TRAIN" (default) or
 *   "TEST", "batch": rows (0 = the net's), "level", "stages": [..],
 *   "shapes": {TOP of a layer whose files are missing: [channels, height, width] or all sizes}} */
CFT_API int cft_explain(const char* options, char** out);
/* The seconds that a step of `passes` passes over a batch should take with `threads`
 * threads of this machine while other programs use its other cores: the least that the machine's limits
 * allow, times what a small training needs more; and in training the update, which `ranks` ranks divide
 * among themselves. Limits and training are measured once, in less than four seconds, and kept in
 * cafetiere/machine.json in the user's cache folder. The exchange between ranks is not part of it.
 * options: as for cft_explain. */
CFT_API int cft_step_seconds(const char* options, int threads, int passes, int ranks, double* out);

/* ---- rows ---------------------------------------------------------------------------------- */

/* A table of rows in native memory.
 * schema: {"columns": [{"name": "image", "type": "u8"|"i32"|"i64"|"f32"|"f64"|"string",
 *          "resize": true to resize the encoded images in it, otherwise absent}, ...],
 *          "id": column name or "" (then the identity is a hash of the row's bytes)}
 * A column holds any number of values of its type; append checks how many a top needs. */
CFT_API int cft_rows_create(const char* schema, cft_rows** out);
/* Appends `count` rows. Each row is its columns in schema order; each column is a uint32
 * (little-endian) number of payload bytes, then the payload. "string" is UTF-8. */
CFT_API int cft_rows_append(cft_rows* rows, int64_t count, const void* chunk, uint64_t bytes);
CFT_API int cft_rows_count(const cft_rows* rows, int64_t* out);
CFT_API void cft_rows_destroy(cft_rows* rows);

/* How much memory the rows of tables may take together. Rows beyond that go to
 * files in `folder`, which the process maps. The files have no name and disappear with the process,
 * however it ends. A full disk is CFT_IO. Any thread; tables keep what they need of the budget when it
 * is destroyed.
 * options: {"bytes": of memory, "folder": path of a folder on a local disk} */
CFT_API int cft_row_budget_create(const char* options, cft_row_budget** out);
CFT_API void cft_row_budget_destroy(cft_row_budget* budget);
/* Like cft_rows_create(), but under a budget (NULL: none), which also covers the shards that the rows
 * go to. */
CFT_API int cft_rows_create_within(const char* schema, cft_row_budget* budget, cft_rows** out);

/* Tells which rows a net can take: those with as many values as its tops, and with image
 * files that can be decoded and either have its size or are to be resized. Labels and NaN are not
 * checked.
 * options: {"schema": as for cft_rows_create, "inputs", "solver", "net": as for cft_trainer_create,
 *   "phase": "TRAIN" or "TEST", as for cft_describe}. No mean_file is read. */
typedef struct cft_row_check cft_row_check;
CFT_API int cft_row_check_create(const char* options, cft_row_check** out);
/* good[i]: 1 if the net can take row i of a chunk as for cft_rows_append(), else 0; why: what is wrong
 * with the first row that it cannot take, "" if it can take all. One thread at a time. */
CFT_API int cft_row_check_run(cft_row_check* check, int64_t count, const void* chunk,
                              uint64_t bytes, uint8_t* good, char** why);
CFT_API void cft_row_check_destroy(cft_row_check* check);

/* ---- tables -------------------------------------------------------------------------------- */

/* What must be known about a table's columns to train a net on them. Cells may be text,
 * dates or missing. Parts of a table are counted separately and merged without rounding, so the
 * partitioning makes no difference. The net made from it reads the table's rows unchanged, through a
 * layer TableData. In rows, a missing cell has no bytes.
 * options: {"schema": as for rows, "columns": [{"name": TEXT, "kind": "NUMBER" (default; of "size"
 *   numbers in each cell, else 1)|"CATEGORY"|"DATE" (i32 days since 1970)|"TIMESTAMP" (i64 microseconds)|
 *   "CLASS" (a label)|"FLAGS" (a label of "size" numbers that are 0 or 1)|"WEIGHT" (of a row in the
 *   loss: at most one column, of finite numbers that are 0 or more)}]} */
typedef struct cft_table cft_table;
CFT_API int cft_table_create(const char* options, cft_table** out);
/* Counts `count` rows, encoded as for cft_rows_append(). An error leaves the table unfit for use. */
CFT_API int cft_table_add(cft_table* table, int64_t count, const void* chunk, uint64_t bytes);
/* Adds another part: what cft_table_statistics() gave for a table made with the same options. */
CFT_API int cft_table_merge(cft_table* table, const void* statistics, uint64_t bytes);
/* The same bytes for the same multiset of rows. */
CFT_API int cft_table_statistics(const cft_table* table, void** out, uint64_t* bytes);
/* The text of a net that learns one column from the others. Each row's loss is multiplied by the row's
 * weight and divided by the mean weight of all counted rows. The loss of a batch is the sum of these,
 * divided by the number of rows in the batch.
 * options: {"label": the column to learn, or "labels": several columns of numbers,
 *   "class_weights": "balanced" or pairs such as "spam=5, ham=1", which weight rows by their label (other
 *   classes: 1), "loss": of numbers, "squared" (default), "huber" or "quantile", "delta": of "huber", in
 *   standard deviations of the label (default 1), "quantiles": [numbers between 0 and 1], one prediction
 *   each,
 *   "initial": prototxt of a model's net whose weights this one starts from: features, and the label
 *   if it is the same, are encoded as in that net; if the label differs, the scores' layer gets a new
 *   name,
 *   "frozen": [names of layers that are not trained; NAME includes the layers NAME/...],
 *   "layers": [units of each hidden layer] (default [64, 32]),
 *   "activation": a layer type (default "ReLU"), "dropout": share of units, "batch_norm": 0 or 1,
 *   "members": nets of these layers that share embeddings and whose scores are averaged (default 1),
 *   "posterior": 1 = the embedding of a column with its own layers ends as posterior means, where a
 *   cell has one value, the label is a class, and there are neither weights nor several members;
 *   0 = as trained (default 1),
 *   "net": prototxt of hidden layers to use instead, the first of which reads the blob "input" and
 *   the last of which feeds the scores, or of a whole net, "batch": rows (default 64), "step_rows":
 *   rows that all ranks use in a step; with the rows of each value it sets how much more than other
 *   weights AdamW decays embeddings towards 0 (default 0: no more than other weights),
 *   "most_one_hot": a category with more values than this is embedded (default 8),
 *   "most_values", "least_count": which of a category's values are kept; the others count as one (50000,
 *   1)} */
CFT_API int cft_table_net(const cft_table* table, const char* options, char** out);
CFT_API void cft_table_destroy(cft_table* table);

/* ---- a net for each key -------------------------------------------------------------------- */

/* Trains many small nets, one after another on the calling thread, each on the rows of
 * one key. The encoding depends on these rows alone, and the weights are those that cft_trainer_run()
 * gives for them with one shard. What nets of equal shapes share is made once.
 * options: {"schema", "columns": as for cft_table_create; "net": {the options of cft_table_net};
 *   "solver": TEXT without nets, clip_gradients, iter_size or test_interval, "seed", "max_iter": as for
 *   cft_trainer_create, "epochs": passes over the rows, instead of "max_iter" steps,
 *   "least_rows": a key with fewer is an error (default 1)} */
typedef struct cft_keyed cft_keyed;
/* The result of a key; texts and bytes are valid until the next call. The caller sets `struct_size`. */
typedef struct cft_keyed_net {
  uint64_t struct_size;
  int64_t rows, steps;
  double loss;     /* of the last step */
  const char* net; /* prototxt, as of cft_table_net */
  uint64_t net_bytes;
  const void* model; /* a caffemodel */
  uint64_t model_bytes;
  const char* classes; /* JSON: the label's classes in the order of scores, [] if it is a number */
} cft_keyed_net;
CFT_API int cft_keyed_create(const char* options, cft_keyed** out);
/* Adds `count` rows, encoded as for cft_rows_append(), to the current key. After an error the key takes
 * no more rows, and its training fails. */
CFT_API int cft_keyed_add(cft_keyed* keyed, int64_t count, const void* chunk, uint64_t bytes);
/* Ends the key: trains its net and frees its rows. An error affects only this key. */
CFT_API int cft_keyed_train(cft_keyed* keyed, cft_keyed_net* out);
/* Ends the key without a net. */
CFT_API int cft_keyed_drop(cft_keyed* keyed);
/* Any thread: cft_keyed_train fails with CFT_CANCELLED at the net's next step, and for all later keys. */
CFT_API void cft_keyed_cancel(cft_keyed* keyed);
CFT_API void cft_keyed_destroy(cft_keyed* keyed);

/* ---- groups -------------------------------------------------------------------------------- */

/* Opens this rank's end of a group and listens; no peer is contacted yet. Two connections join every pair
 * of ranks, so each rank needs 2 * (size - 1) of the files that its process may open; a lower limit is an
 * error here.
 * options: {"rank", "size", "bind": IP address to listen on and advertise,
 *   "ports": the range of ports to listen on, such as "40000-40100" (default: any free port),
 *   "secret": text that all ranks share (never sent), 16 random bytes or more, different in each run;
 *   anyone who does not know it is refused and learns nothing about the group, "generation": text that
 *   all ranks of this attempt share,
 *   "timeout_ms": how long a peer may stay silent before it counts as lost (default 6000),
 *   "connection": between hosts, "ethernet" (default) or "infiniband": UCX, if all ranks ask for it and
 *   find libucp.so.0 at run time, and nothing is encrypted; otherwise TCP. The log says what is used,
 *   "encrypt": 1 for TLS 1.3 on all connections, the same on all ranks (default 0); memory that
 *   ranks on one host share is not encrypted}
 * Without "encrypt" only the start of a connection is authenticated: anyone who can change packets in
 * transit can read and change what follows. */
CFT_API int cft_group_create(const char* options, cft_group** out);
/* "IP:port", to be given to the other ranks. */
CFT_API int cft_group_address(const cft_group* group, char** out);
/* addresses: JSON array of all ranks' addresses, by rank. Returns when all are connected. */
CFT_API int cft_group_connect(cft_group* group, const char* addresses);
/* Replaces the secret of cft_group_create(), before connecting: for ranks that agree
 * on a secret when they exchange their addresses. */
CFT_API int cft_group_set_secret(cft_group* group, const char* secret);
/* Returns when all ranks of the connected group have called it. Must not be called
 * while another call works with the group. */
CFT_API int cft_group_barrier(cft_group* group);
/* Sets the listener for the group's messages, such as those about refused
 * connections. The newest 1000 earlier messages are kept and delivered first. NULL: no listener; then the
 * trainer that runs with the group logs them. */
CFT_API int cft_group_log(cft_group* group, cft_log log, void* context);
/* Any thread: every pending or later call of any rank of this group fails within milliseconds. */
CFT_API void cft_group_cancel(cft_group* group);
CFT_API void cft_group_destroy(cft_group* group);

/* ---- training ------------------------------------------------------------------------------ */

/* The modes of distributed training that "sync" names, the default first:
 * [{"name", "text": how ranks work together, "promises": when two trainings end with the same bits,
 *   "survivors": whether ranks may come and go, "rounds": whether a cft_rounds can drive it,
 *   "rank_shards": "one" = each rank has one shard, "equal" = all have the same number, "any"}, ...] */
CFT_API int cft_sync_modes(char** out);

/* Called on the thread that runs the trainer. Return 0 to go on, non-zero to stop the run with
 * CFT_CANCELLED. */
typedef struct cft_callbacks {
  uint64_t struct_size;
  void* context;
  /* One JSON object, on rank 0 only, at the end and at the steps of the solver's display. Without a
   * display about once a second; if the display would come more than 10,000 times, at most five times a
   * second: {"event": "progress", "step", "max_iter", "epoch", "loss", "lr", "rows_per_s", "wait_data",
   *  "wait_comm", "seconds", "first_step": that of this run} |
   * {"event": "test", "step", "net", "outputs": {NAME: VALUE}} |
   * {"event": "log", "level": "info"|"warning"|"error", "text"}: warnings and what the run has decided,
   *   such as the mode that "auto" takes; cft_trainer_log() gives all messages */
  int (*event)(void* context, const char* json);
  /* A complete checkpoint, on rank 0 only; may be NULL. json: {"step", "sha256": of the model,
   * "snapshot": whether the solver's snapshot asks for it; if so, the state names
   * PREFIX_iter_STEP.caffemodel, with the last part of snapshot_prefix, as its weights}.
   * The bytes are valid during the call. With "checkpoint_folder" (see cft_trainer_create) they may
   * be files: then json has "model_file" and "state_file" instead of "sha256", model and state are
   * NULL, and the files belong to the caller, who may move or remove them. */
  int (*checkpoint)(void* context, const char* json, const void* model, uint64_t model_bytes,
                    const void* state, uint64_t state_bytes);
} cft_callbacks;

/* options: {"solver": TEXT, "net": TEXT ("" = the solver's own), "rank", "size", "shards" (0 = size),
 *   "threads": of this rank, "prefetch_threads": further threads, which make batches of rows (default
 *   1), "seed" (used when the solver has no random_seed),
 *   "inputs": [{"top": "data", "column": "image"}, ...], tops of any data layers of the nets that are
 *   trained and tested; a row feeds them all (a top that is not listed: from the column with its name),
 *   "mean_files": {NAME: its bytes in base64, ...}: for names in mean_file fields of the nets;
 *   others are read as files on this machine,
 *   "max_iter" (0 = the solver's), "checkpoint_every": steps (0 = the solver's snapshot),
 *   "snapshots": 1 = also at the solver's snapshot,
 *   "solver_fields": text of solver fields that replace those of "solver",
 *   "sync": a mode ("average"), or text of a SyncParameter that is merged into the solver's own,
 *   "deepspark": text of a DeepSparkParam, read before "sync",
 *   "survivors": 1 = ranks come and go, see cft_trainer_run(); then "shards" is not used,
 *   "checkpoint_folder": a folder on this machine or "", where rank 0 leaves
 *   what the solver wants as HDF5 or what exceeds the 2 GiB of the binary form,
 *   "events": path prefix or "" — writes PREFIX.jsonl and TensorBoard files beside it} */
CFT_API int cft_trainer_create(const char* options, const cft_callbacks* callbacks,
                               cft_trainer** out);
/* Weights alone (state NULL: fine-tuning) or weights and state (resume); caffemodel and solverstate
 * bytes. Before the run, the same on every rank. */
CFT_API int cft_trainer_restore(cft_trainer* trainer, const void* model, uint64_t model_bytes,
                                const void* state, uint64_t state_bytes);
/* The same from files of either form and of any size; state may be NULL. The
 * files may be removed once the run has begun. */
CFT_API int cft_trainer_restore_files(cft_trainer* trainer, const char* model, const char* state);
/* Rows held out for the solver's test net, this rank's part of them; `rows` is emptied. Tested every
 * test_interval steps and at the end, over all rows (test_iter is ignored). Optional; before the
 * run, on every rank or on none. */
CFT_API int cft_trainer_validation(cft_trainer* trainer, cft_rows* rows);
/* Shuffles the rows of all ranks to the shards, then trains to max_iter. `group` is NULL when size is
 * 1; `rows` is emptied. Blocks; every rank must call it.
 * With "survivors" rows are not shuffled: each rank keeps its own. When the call fails because a peer
 * was lost or is about to join (CFT_UNAVAILABLE, CFT_TIMEOUT, or CFT_CANCELLED after
 * cft_group_cancel), it may be called again with another group and `rows` NULL: training continues
 * from the newest round that a member of the group has, and a newcomer gets its weights from that
 * member. */
CFT_API int cft_trainer_run(cft_trainer* trainer, cft_group* group, cft_rows* rows);
/* As cft_group_log, on every rank. */
CFT_API int cft_trainer_log(cft_trainer* trainer, cft_log log, void* context);
/* Any thread: the run stops with CFT_CANCELLED at its next iteration or test batch. */
CFT_API void cft_trainer_cancel(cft_trainer* trainer);
/* Any thread, on rank 0: the run soon takes a checkpoint between two steps; in a
 * group, after the next progress event and once all ranks have the same weights. The checkpoint does
 * not change the weights. Ignored on other ranks of a group. */
CFT_API int cft_trainer_checkpoint(cft_trainer* trainer);
/* Any thread: the rows that this rank has trained on so far, by epoch: {"0": N,
 * ...}; with "survivors", in all its groups. A round counts once it has ended. */
CFT_API int cft_trainer_rows(cft_trainer* trainer, char** out);
/* How the rank has spent its time, in seconds: {"computing", "data", "network":
 *   waits for rows and for other ranks, "testing", "storing": checkpoints, and everything after a run,
 *   "starting"}. They add up to the time since the trainer was made. On the thread that runs it. */
CFT_API int cft_trainer_seconds(cft_trainer* trainer, char** out);
/* Any thread: the state of a run: {"step": steps done, "doing": what it
 * does now, as in cft_trainer_seconds(), "thread": the kernel's id of the thread in cft_trainer_run(),
 * else 0}. */
CFT_API int cft_trainer_place(cft_trainer* trainer, char** out);
/* The stacks of the engine's threads in this process and of `thread`, an id as above,
 * or 0 for none. The text is for people: FILE+OFFSET of each frame. Asks the threads with signal
 * SIGRTMAX - 5, and keeps a handler for it from then on, unless the process already has one. */
CFT_API int cft_thread_stacks(int thread, char** out);
/* After a run: {"steps", "epochs", "rows_given", "rows_per_epoch": [..], "loss", "seconds",
 *   "rows_per_s", "sha256": of the model, "" where that is larger than the binary form's 2 GiB,
 *   "shards", "ranks", "peak_bytes", "instruction_set": see cft_instruction_set,
 *   "files": whether only cft_trainer_save gives model and state,
 *   "early_stopping": null, or if the solver asks for it {"output": the one that is
 *   watched, "best_step", "best": its value, "interval": steps from one test to the next, "stopped":
 *   whether it ended the run, "curve": [[step, value] of each test]}; then the model is that of
 *   best_step, and the state is that of the end}
 * Rows are those of all ranks that reached the end; with "survivors", "rows_given" counts this rank's
 * rows. */
CFT_API int cft_trainer_result(cft_trainer* trainer, char** out);
/* After a run: the weights as a caffemodel. */
CFT_API int cft_trainer_model(cft_trainer* trainer, void** out, uint64_t* bytes);
/* After a run, on rank 0: iteration and history at its end as a solverstate, regardless of the solver's
 * snapshot_after_train. */
CFT_API int cft_trainer_state(cft_trainer* trainer, void** out, uint64_t* bytes);
/* Both as HDF5 files of any size, on rank 0; state may be NULL. Call it once, and
 * last: the state may be moved out of "checkpoint_folder". */
CFT_API int cft_trainer_save(cft_trainer* trainer, const char* model, const char* state);
CFT_API void cft_trainer_destroy(cft_trainer* trainer);
/* Converts the bytes of a caffemodel, or of a solverstate, to what Caffe writes with
 * snapshot_format: HDF5; learned_net: path of the weights' file. */
CFT_API int cft_weights_hdf5(const void* model, uint64_t model_bytes, void** out, uint64_t* bytes);
CFT_API int cft_state_hdf5(const void* state, uint64_t state_bytes, const char* learned_net,
                           void** out, uint64_t* bytes);

/* ---- replicas ------------------------------------------------------------------------------ */

/* For engines that train in rounds and carry weights between machines themselves, such as ordinary
 * Spark jobs. In a round each shard trains on its own, as a cft_replica, from the floats that all share
 * ("shared": the weights, and with history "averaged" the history), and cft_rounds makes the next
 * shared floats from the sum. The weights have the same bits as those of ranks in a group
 * with the same shards; the solver's sync message has mode "average" or "diloco". */
typedef struct cft_replica cft_replica;
typedef struct cft_rounds cft_rounds;

/* The order in which rows go to V shards: the row at position p of all rows goes to shard p % V.
 * keys: 32 bytes a row: 24 that give its place in memcmp() order, then a uint64 (little-endian), the
 * number of bytes of the encoded row. seed: as cft_rounds_describe() says. */
CFT_API int cft_rows_keys(const cft_rows* rows, int64_t seed, void* keys);
/* The sum of `count` arrays in the shard tree: sums of groups of 2^k consecutive shards (the last may
 * be smaller) add up to the bits of the whole tree. */
CFT_API int cft_tree_sum(const float* const* arrays, int32_t count, uint64_t floats, float* out);

/* options: {"solver", "net", "solver_fields", "sync", "deepspark", "shards", "shard", "threads", "seed",
 *   "inputs",
 *   "mean_files", "max_iter"}, as for cft_trainer_create. */
CFT_API int cft_replica_create(const char* options, cft_replica** out);
/* The shard's rows in the order of their keys; `rows` is emptied. total_rows: of all shards. */
CFT_API int cft_replica_rows(cft_replica* replica, cft_rows* rows, int64_t total_rows);
/* Any rows held out for the solver's test net; `rows` is emptied. */
CFT_API int cft_replica_validation(cft_replica* replica, cft_rows* rows);
/* Takes the shard's history out of a solverstate. */
CFT_API int cft_replica_restore(cft_replica* replica, const void* state, uint64_t bytes);
/* Trains iterations [iter, iter + steps) from `shared`, which becomes the replica's.
 * report: {"losses": [of each iteration, times the share of this shard's rows], "rows": [[epoch,
 *   rows used], ...], "epoch", "lr", "compute_seconds", "wait_seconds"}. After an error, destroy the
 * replica. */
CFT_API int cft_replica_round(cft_replica* replica, int64_t iter, int64_t steps, float* shared,
                              uint64_t floats, char** report);
/* scores: {"net", "rows", "outputs": [[NAME, mean over the rows], ...]}; 0 rows if none are held
 * out. */
CFT_API int cft_replica_test(cft_replica* replica, const float* shared, uint64_t floats,
                             char** scores);
/* The shard's part of a posterior that was begun: sums as float32, for
 * cft_rounds_end_posterior. Reads all rows of the shard. */
CFT_API int cft_replica_posterior(cft_replica* replica, const float* begun, uint64_t floats,
                                  void** sums, uint64_t* bytes);
/* The shard's history as float32, for cft_rounds_state. */
CFT_API int cft_replica_history(cft_replica* replica, void** out, uint64_t* bytes);
/* As cft_group_log. */
CFT_API int cft_replica_log(cft_replica* replica, cft_log log, void* context);
/* Any thread: the iterations done, including those of the current round. */
CFT_API int cft_replica_step(const cft_replica* replica, int64_t* step);
/* Any thread: the current round fails with CFT_CANCELLED at its next iteration. */
CFT_API void cft_replica_cancel(cft_replica* replica);
CFT_API void cft_replica_destroy(cft_replica* replica);

/* options: as for a replica; "shard" and "inputs" are ignored. */
CFT_API int cft_rounds_create(const char* options, cft_rounds** out);
/* As cft_trainer_restore. */
CFT_API int cft_rounds_restore(cft_rounds* rounds, const void* model, uint64_t model_bytes,
                               const void* state, uint64_t state_bytes);
/* {"iter": next, "length": iterations of the next round, 0 at the end, "floats": shared ones,
 *   "keeps_history": whether each replica has its own history, "mode", "period", "seed", "max_iter",
 *   "test_interval", "test_initialization", "snapshot", "average_loss", "early_stopping": null, or as
 *   cft_trainer_result() says, with "due": whether to test before the round,
 *   "posterior": whether a posterior is due} */
CFT_API int cft_rounds_describe(const cft_rounds* rounds, char** out);
CFT_API int cft_rounds_shared(const cft_rounds* rounds, float* out, uint64_t floats);
/* Ends the round described: sums[i] is the tree sum of group i of the shards. */
CFT_API int cft_rounds_end(cft_rounds* rounds, const float* const* sums, int32_t count,
                           uint64_t floats);
/* The value, in a test of the shared weights, of the output that the solver's
 * early_stopping names. Call it before the round that begins with these weights ends, or after the last
 * round. If cft_rounds_describe() then says length 0, the training has ended and that round must not be
 * counted. Once the training has ended, the model is that of the best test. */
CFT_API int cft_rounds_test(cft_rounds* rounds, double value);
/* The posterior means of an embedding (PosteriorParameter), one after another while
 * "posterior" says so, after the last round and its test: begin; give the floats that it returns to
 * cft_replica_posterior() of every shard; end with the sums, as for a round. */
CFT_API int cft_rounds_begin_posterior(cft_rounds* rounds, void** begun, uint64_t* bytes);
CFT_API int cft_rounds_end_posterior(cft_rounds* rounds, const float* const* sums, int32_t count,
                                     uint64_t floats);
/* The weights as a caffemodel. */
CFT_API int cft_rounds_model(const cft_rounds* rounds, void** out, uint64_t* bytes);
/* Iteration and history as a solverstate. histories: those of each shard if replicas keep their own;
 * otherwise count is 0. */
CFT_API int cft_rounds_state(const cft_rounds* rounds, const float* const* histories, int32_t count,
                             uint64_t floats, void** out, uint64_t* bytes);
/* As cft_group_log. */
CFT_API int cft_rounds_log(cft_rounds* rounds, cft_log log, void* context);
CFT_API void cft_rounds_destroy(cft_rounds* rounds);

/* ---- prediction ---------------------------------------------------------------------------- */

/* options: {"net": TEXT, "schema": as for rows, or absent for one column of floats that feeds the
 *   features, see cft_describe(), "inputs", "mean_files": as for the trainer,
 *   "outputs": [blob names] (empty = the blobs that only losses and scores read),
 *   "batch": rows a pass (0 = the net's), "threads",
 *   "weights": path of a file of either form and of any size, to use instead of `model`, which is then
 *   not read, or "",
 *   "precision": the format of products and activations, "float32" (the default), "bf16", or "auto":
 *   bf16 if the processor has AMX}
 * Inputs that have no column (a label on a table without one) read as zero; layers that only serve
 * losses and scores are left out unless an output needs them. A layer that an output depends on and
 * whose weights are not there is an error. */
CFT_API int cft_predictor_create(const char* options, const void* model, uint64_t model_bytes,
                                 cft_predictor** out);
/* Another predictor, for another thread, with the options and the weights of
 * `predictor`. The two share one copy of the weights in memory; each has its own plans. Any thread, at
 * any time; either may be destroyed first. */
CFT_API int cft_predictor_share(const cft_predictor* predictor, cft_predictor** out);
/* Makes the next run like the first one of a new predictor: recurrent layers, which
 * otherwise continue where the previous rows ended, start from zeros. */
CFT_API int cft_predictor_reset(cft_predictor* predictor);
/* {"outputs": [{"name", "shape": of a row: without the batch axis, or, where a row has several items on
 *   it, with their number, "size": floats a row}], "batch": rows a pass} */
CFT_API int cft_predictor_describe(const cft_predictor* predictor, char** out);
/* Runs `count` rows (encoded as for cft_rows_append); outputs[i] receives count * size_i floats. */
CFT_API int cft_predictor_run(cft_predictor* predictor, int64_t count, const void* chunk,
                              uint64_t bytes, float* const* outputs);
/* The same, but if the net does not have `output_count` outputs, or an array has room
 * for fewer than count * size_i floats, it is an error before anything is written. room: floats of each. */
CFT_API int cft_predictor_fill(cft_predictor* predictor, int64_t count, const void* chunk,
                               uint64_t bytes, float* const* outputs, const uint64_t* room,
                               int32_t output_count);
/* The same for rows of floats, where all columns of the schema are "f32":
 * columns[c] has count * floats[c] floats, one row after another, which are read in place. The
 * outputs have the bits that cft_predictor_run() gives for these rows. */
CFT_API int cft_predictor_floats(cft_predictor* predictor, int64_t count,
                                 const float* const* columns, const uint64_t* floats,
                                 int32_t column_count, float* const* outputs, const uint64_t* room,
                                 int32_t output_count);
/* Floats a row of output number `output`; CFT_NOT_FOUND if there is none. */
CFT_API int cft_predictor_row_size(const cft_predictor* predictor, int32_t output, int64_t* out);
CFT_API void cft_predictor_destroy(cft_predictor* predictor);

/* ---- nets, layer by layer ------------------------------------------------------------------- */

/* A blob: row-major float32, `data` and `diff` of the same shape. The caller sets `struct_size`. */
#define CFT_MAX_AXES 32
typedef struct cft_blob {
  uint64_t struct_size;
  float* data;
  float* diff;
  int32_t axes;
  int64_t dims[CFT_MAX_AXES];
} cft_blob;

/* Why a layer outside the engine is called. */
typedef enum cft_layer_event {
  CFT_LAYER_SETUP = 0,   /* once; set `param_count` and the shapes of `params` */
  CFT_LAYER_RESHAPE = 1, /* set the shapes of `tops`; also comes before every forward */
  CFT_LAYER_VALUES = 2,  /* once; give `params` their initial values */
  CFT_LAYER_FORWARD = 3, /* write the tops' data */
  CFT_LAYER_BACKWARD = 4 /* replace the bottoms' diff if `propagate_down` says so, add to params' */
} cft_layer_event;

#define CFT_MAX_LAYER_PARAMS 32
typedef struct cft_layer_call {
  uint64_t struct_size; /* set by the library, here and in the blobs */
  int32_t event;        /* a cft_layer_event */
  int32_t bottom_count, top_count, param_count;
  cft_blob *const *bottoms, *const *tops, *const *params; /* memory is NULL in SETUP and RESHAPE */
  const uint8_t* propagate_down;                          /* one a bottom; in BACKWARD only */
} cft_layer_call;

/* Callbacks of a net or solver, on the thread that called into it. If a function returns an
 * int, non-zero ends the current call with an error whose text `error` gives. Any may be NULL. */
typedef struct cft_host {
  uint64_t struct_size;
  void* context;
  void (*log)(void* context, int level, const char* text); /* level: 0 info, 1 warning, 2 error */
  const char* (*error)(void* context); /* what went wrong in the callback that failed last */
  /* A layer of type "Python". param: its LayerParameter as prototxt. */
  int (*layer_create)(void* context, const char* param, int64_t* layer);
  int (*layer_call)(void* context, int64_t layer, cft_layer_call* call);
  void (*layer_destroy)(void* context, int64_t layer);
  /* Of a solver: before an iteration's passes; between them and the update. */
  int (*on_start)(void* context);
  int (*on_gradients_ready)(void* context);
  /* Of a solver: before each of the iter_size passes of an iteration. */
  int (*on_pass)(void* context);
} cft_host;

/* options: {"path": of a prototxt | "text", "phase": "TRAIN"|"TEST", "level", "stages": [..],
 *   "weights": path or "", "threads", "seed"} */
CFT_API int cft_net_create(const char* options, const cft_host* host, cft_net** out);
/* {"name", "layers": [{"name", "type", "bottoms": [blob numbers], "tops": [..], "params": [..],
 *   "host_layer": its number if a host made it, else 0}],
 *   "blobs": [{"name", "loss_weight"}], "inputs": [blob numbers], "outputs": [..]}; "params" are
 *   numbers for cft_net_param. Split layers are included; an in-place layer has the same bottom and top. */
CFT_API int cft_net_describe(const cft_net* net, char** out);
/* A blob or parameter by number. `memory`, unless NULL, receives a handle that keeps `data` and `diff`
 * valid until cft_memory_release(), even after the net is destroyed. Without it they are valid until the
 * blob is given a larger shape. */
CFT_API int cft_net_blob(const cft_net* net, int32_t number, cft_blob* out, cft_memory** memory);
CFT_API int cft_net_param(const cft_net* net, int32_t number, cft_blob* out, cft_memory** memory);
CFT_API void cft_memory_release(cft_memory* memory);
/* Gives a blob another shape; the layers after it adapt when they run, or on cft_net_reshape(). */
CFT_API int cft_net_reshape_blob(cft_net* net, int32_t number, const int64_t* dims, int32_t axes);
CFT_API int cft_net_reshape(cft_net* net);
/* Runs layers [from, to]; *loss, unless NULL, is the sum of their losses. */
CFT_API int cft_net_forward(cft_net* net, int32_t from, int32_t to, float* loss);
/* Runs layers from `from` down to `to`; parameters' diffs are added to, blobs' are replaced. */
CFT_API int cft_net_backward(cft_net* net, int32_t from, int32_t to);
CFT_API int cft_net_clear_param_diffs(cft_net* net);
/* Feeds a MemoryData layer from `rows` rows of data and labels in turn, a multiple of its batch. The
 * arrays are referenced, not copied; `labels` holds one float a row. */
CFT_API int cft_net_set_input(cft_net* net, const char* layer, const float* data,
                              const float* labels, int64_t rows);
/* Weights by layer name from a caffemodel or its HDF5 form. */
CFT_API int cft_net_copy_from(cft_net* net, const char* path);
CFT_API int cft_net_share_with(cft_net* net, const cft_net* other);
CFT_API int cft_net_save(const cft_net* net, const char* path, int hdf5);
CFT_API void cft_net_destroy(cft_net* net);

/* ---- solvers, step by step ------------------------------------------------------------------ */

/* options: {"path": of a prototxt | "text", "type" ("" = the solver's own), "threads",
 *   "seed" (used when the solver has none)} */
CFT_API int cft_solver_create(const char* options, const cft_host* host, cft_solver** out);
/* {"type", "max_iter", "display", "base_lr", "test_nets": number, "iter", "lr": of the last update} */
CFT_API int cft_solver_describe(const cft_solver* solver, char** out);
/* The training net (-1) or a test net; it belongs to the solver and must not be destroyed. */
CFT_API int cft_solver_net(cft_solver* solver, int32_t test, cft_net** out);
CFT_API int cft_solver_step(cft_solver* solver, int32_t iterations);
/* From now on each update uses the mean of all ranks' gradients, added in the
 * tree of cft_trainer_run(). The call sets the weights of all ranks to those of rank 0, and they stay the
 * same to the bit. Each rank keeps the whole history, so any rank may take a snapshot alone. Every rank
 * calls it with its end of a connected group, at the same iteration, and then does the same steps and
 * nothing else with the group; a step that fails on one rank fails on all. Statistics, such as
 * BatchNorm's, remain each rank's own. */
CFT_API int cft_solver_join(cft_solver* solver, cft_group* group);
/* Trains to max_iter, with the snapshot, loss and test that the solver asks for at the end. */
CFT_API int cft_solver_solve(cft_solver* solver);
/* Updates the weights by the gradients that are there, which ends an iteration, as in Caffe after 1.0. */
CFT_API int cft_solver_apply_update(cft_solver* solver);
CFT_API int cft_solver_set_base_lr(cft_solver* solver, float rate);
CFT_API int cft_solver_snapshot(cft_solver* solver);
CFT_API int cft_solver_restore(cft_solver* solver, const char* path);
CFT_API void cft_solver_destroy(cft_solver* solver);

/* ---- images --------------------------------------------------------------------------------- */

/* Images have 8 bits a channel, with rows from the top and the
 * channels of a pixel side by side: gray; or blue, green and red; or these and alpha. */

/* Decodes JPEG, PNG or WebP. color: "stored" (what the file has), "color" or "gray". */
CFT_API int cft_image_decode(const void* file, uint64_t bytes, const char* color, int32_t* height,
                             int32_t* width, int32_t* channels, void** pixels);
/* Bilinear, to the same bytes as OpenCV's resize(). pixels: height * width * channels bytes. */
CFT_API int cft_image_resize(const void* pixels, uint64_t bytes, int32_t height, int32_t width,
                             int32_t channels, int32_t to_height, int32_t to_width, void** out);

/* What a data layer does to images before a net gets them.
 * options: {"param": TEXT of a TransformationParameter, "phase": "TRAIN"|"TEST", "seed"} */
CFT_API int cft_transformer_create(const char* options, cft_transformer** out);
/* One image, as floats, plane after plane. number: of the image; with the seed it decides where the image
 * is cropped and whether it is mirrored. out: room for `floats` values, which must be the exact
 * number: channels * crop_size^2, or channels * height * width without a crop. */
CFT_API int cft_transformer_run(cft_transformer* transformer, const void* pixels, uint64_t bytes,
                                int32_t height, int32_t width, int32_t channels, int64_t number,
                                float* out, uint64_t floats);
CFT_API void cft_transformer_destroy(cft_transformer* transformer);

/* ---- LMDB ----------------------------------------------------------------------------------- */

/* A file that the caller reads, such as one on HDFS. */
typedef struct cft_file {
  uint64_t struct_size;
  void* context;
  uint64_t size; /* bytes; must not change */
  /* Copies `bytes` bytes from `offset` on, all inside the file, to `out`; non-zero ends the current
   * call with CFT_IO. Called on the thread that opens, splits or moves a cursor: on several at a time
   * if the caller does so. */
  int (*read)(void* context, uint64_t offset, void* out, uint64_t bytes);
  const char* name; /* in errors, such as the path; NULL: "the caller's LMDB file" */
} cft_file;

typedef struct cft_lmdb cft_lmdb;
typedef struct cft_lmdb_cursor cft_lmdb_cursor;
typedef struct cft_lmdb_writer cft_lmdb_writer;

/* Opens a database that nobody writes to: by the path of its folder or data.mdb, which is mapped into
 * memory, or through `file`, whose context must stay valid until the last cursor is destroyed. The other
 * argument is NULL. The contents of pages are checked: a damaged file is an error of the call that meets
 * the damage. */
CFT_API int cft_lmdb_open(const char* path, const cft_file* file, cft_lmdb** out);
CFT_API int cft_lmdb_records(const cft_lmdb* lmdb, int64_t* out);
/* 1 if it has key ranges; 0 if its keys are in a special order (MDB_REVERSEKEY, MDB_INTEGERKEY), so that
 * it cannot be split and is read from the first record to the last. */
CFT_API int cft_lmdb_has_ranges(const cft_lmdb* lmdb, int32_t* out);
/* At most ranges - 1 keys, in order, that cut the database into ranges of about equal size; fewer if
 * it has fewer records. Each key is a uint32 (little-endian) number of bytes, then these bytes. Reads at
 * most a fiftieth of a large file. */
CFT_API int cft_lmdb_split(const cft_lmdb* lmdb, int32_t ranges, void** keys, uint64_t* bytes);
/* Cursors remain valid. */
CFT_API void cft_lmdb_close(cft_lmdb* lmdb);
/* A cursor before the first record whose key k has from <= k < to, in memcmp() order. NULL with 0 bytes:
 * from the first record, or to the last. */
CFT_API int cft_lmdb_cursor_create(const cft_lmdb* lmdb, const void* from, uint64_t from_bytes,
                                   const void* to, uint64_t to_bytes, cft_lmdb_cursor** out);
/* The next record, whose bytes are valid until the cursor moves or is destroyed; *key is NULL at the end.
 * With value NULL only the key is returned, and a value that has its own pages is not read. */
CFT_API int cft_lmdb_cursor_next(cft_lmdb_cursor* cursor, const void** key, uint64_t* key_bytes,
                                 const void** value, uint64_t* value_bytes);
CFT_API void cft_lmdb_cursor_destroy(cft_lmdb_cursor* cursor);

/* A new database, as liblmdb writes it: creates the local folder `path`, which must not exist. */
CFT_API int cft_lmdb_create(const char* path, cft_lmdb_writer** out);
/* Adds a record to the next commit; it stays in memory until then. Of records with the same key, the last
 * one is kept. Keys have 1 to 511 bytes. */
CFT_API int cft_lmdb_put(cft_lmdb_writer* writer, const void* key, uint64_t key_bytes,
                         const void* value, uint64_t value_bytes);
/* Writes what was put since the last commit; when it returns, the records are on disk. */
CFT_API int cft_lmdb_commit(cft_lmdb_writer* writer);
/* What was put since the last commit is lost. */
CFT_API void cft_lmdb_writer_close(cft_lmdb_writer* writer);

/* ---- HDF5 ----------------------------------------------------------------------------------- */

/* An HDF5 file on this machine. Its datasets are read as floats,
 * whatever their number format. */
typedef struct cft_hdf5 cft_hdf5;
CFT_API int cft_hdf5_open(const char* path, cft_hdf5** out);
/* The sizes of a dataset as JSON, such as [1000, 1, 28, 28]; call it before reading the dataset. */
CFT_API int cft_hdf5_shape(const cft_hdf5* hdf5, const char* dataset, char** out);
/* Its floats from number `begin` on, in row-major order. */
CFT_API int cft_hdf5_read(const cft_hdf5* hdf5, const char* dataset, uint64_t begin, float* out,
                          uint64_t floats);
CFT_API void cft_hdf5_close(cft_hdf5* hdf5);

/* ---- LevelDB -------------------------------------------------------------------------------- */

/* A LevelDB on this machine, read from its first record to its
 * last. */
typedef struct cft_leveldb cft_leveldb;

/* Opens a folder. LevelDB writes a little to it, so nobody else may have it open. */
CFT_API int cft_leveldb_open(const char* path, cft_leveldb** out);
/* The next record, whose bytes are valid until the next call; *key is NULL at the end. */
CFT_API int cft_leveldb_next(cft_leveldb* leveldb, const void** key, uint64_t* key_bytes,
                             const void** value, uint64_t* value_bytes);
CFT_API void cft_leveldb_close(cft_leveldb* leveldb);
/* As cft_lmdb_create: creates the folder, which the writer fills. */
CFT_API int cft_leveldb_create(const char* path, cft_lmdb_writer** out);

/* ---- files ---------------------------------------------------------------------------------- */

/* The schema of all files as a serialised FileDescriptorProto, for protobuf in other languages. */
CFT_API int cft_schema(void** out, uint64_t* bytes);
/* JSON array of the layer types' names, in alphabetical order. */
CFT_API int cft_layer_types(char** out);

/* Weights (a caffemodel's bytes, of either form) as a safetensors file, whose
 * tensors are called LAYER.NUMBER; and such a file as a caffemodel. */
CFT_API int cft_weights_safetensors(const void* model, uint64_t model_bytes, void** out,
                                    uint64_t* bytes);
CFT_API int cft_safetensors_weights(const void* file, uint64_t file_bytes, void** out,
                                    uint64_t* bytes);
/* A net with its weights as an ONNX model: its deploy form, in phase TEST.
 * options: {"net": TEXT, "shapes": {TOP of a data layer: [sizes, the batch first]}, needed if the
 *   net does not give them, "level", "stages": [..], "thresholds": [a number for each class]}. For a net
 *   with TableData, the table's columns are the inputs, the number of rows is left open and, if the
 *   label is a CLASS, "predictedLabel" is another output, by probability / threshold if thresholds are
 * given. model: a caffemodel that has all weights of the net. */
CFT_API int cft_onnx_export(const char* options, const void* model, uint64_t model_bytes,
                            void** out, uint64_t* bytes);
/* Converts an ONNX model (weights inside, opset 9 or later) to the text of a net and a
 * caffemodel. batch: the first size of inputs that leave it open, from 1 to 1048576. */
CFT_API int cft_onnx_import(const void* onnx, uint64_t onnx_bytes, int64_t batch, char** net,
                            void** model, uint64_t* model_bytes);

/* ---- reports ------------------------------------------------------------------------------- */

/* Renders a self-contained HTML page (inline SVG) from the events of a run.
 * events: JSONL text, one event a line; result: JSON object shown as the summary. */
CFT_API int cft_report(const char* events, const char* result, char** html);

#ifdef __cplusplus
}
#endif

#endif /* CAFETIERE_C_API_H_ */
