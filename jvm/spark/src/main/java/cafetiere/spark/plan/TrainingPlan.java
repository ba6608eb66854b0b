// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.plan;

import cafetiere.spark.cluster.PortRange;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.util.Json;
import cafetiere.spark.util.ModelPart;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.UUID;

/**
 * Everything that the ranks of a training must know, fixed before it starts.
 *
 * @param solver text of the solver's prototxt
 * @param net text of the net's prototxt, "" if the solver carries it
 * @param schema the columns that are fed
 * @param workers ranks, each of them one task of the barrier stage
 * @param shards shards of the data; the weights depend on them and not on the ranks
 * @param threads threads of each rank
 * @param prefetchThreads threads of each rank that make batches of rows, beside those
 * @param maxIter steps to train to, 0 for the solver's max_iter
 * @param epochs what becomes a number of steps by {@link #ofRows}
 * @param seed used where the solver has no random_seed
 * @param checkpointDir where checkpoints go, a Hadoop path; "" to choose one
 * @param checkpointInterval steps from one checkpoint to the next, 0 for the solver's snapshot
 * @param model weights to start from, null for those of the net's fillers
 * @param state solver state to go on from, null to start at step 0
 * @param events Hadoop path prefix of JSONL and TensorBoard files that the driver writes, "" for none
 * @param timeoutMillis silence of a peer that counts as its loss
 * @param encrypt whether what travels between the ranks is encrypted
 * @param connection what connects the ranks of different hosts, as the param of that name
 * @param settings what replaces fields of the solver
 * @param survivors whether the others go on when a rank is lost, and it may join them again
 * @param resume whether to go on from the checkpoints of an interrupted run of the same plan
 */
public record TrainingPlan(
    String solver,
    String net,
    FeedSchema schema,
    int workers,
    int shards,
    int threads,
    int prefetchThreads,
    long maxIter,
    Epochs epochs,
    long seed,
    String checkpointDir,
    long checkpointInterval,
    ModelPart model,
    ModelPart state,
    String events,
    int timeoutMillis,
    boolean encrypt,
    String connection,
    SolverSettings settings,
    boolean survivors,
    boolean resume)
    implements Serializable {
  private static final int FINGERPRINT = 16;

  /** The same training by other ranks and shards. */
  public TrainingPlan with(int ranks, int shards) {
    return new TrainingPlan(solver, net, schema, ranks, shards, threads,
        prefetchThreads, maxIter, epochs, seed, checkpointDir, checkpointInterval, model, state, events,
        timeoutMillis, encrypt, connection, settings, survivors, resume);
  }

  /** The same with epochs in steps, of a table that has so many rows. */
  public TrainingPlan ofRows(long rows) {
    if (!epochs.needRows()) return this;
    long steps = epochs.count() > 0 ? epochs.steps(epochs.count(), rows, shards) : maxIter;
    long epoch = Math.max(1, epochs.steps(1, rows, shards));
    String tested = epochs.areTested()
        ? NetDescription.withField(solver, "test_interval", epoch) : solver;
    return new TrainingPlan(tested, net, schema, workers, shards, threads, prefetchThreads, steps, Epochs.NONE, seed,
        checkpointDir, checkpointInterval, model, state, events, timeoutMillis, encrypt, connection,
        settings, survivors, resume);
  }

  /** Steps that take each of so many rows once. */
  public long stepsPerEpoch(long rows) {
    return Math.max(1, epochs.steps(1, rows, shards));
  }

  /** So many steps of it, without a test, and nothing that a user would find afterwards. */
  public TrainingPlan probing(long steps) {
    String alone = NetDescription.withField(
        NetDescription.withField(solver, "test_interval", 0), "snapshot", 0);
    return new TrainingPlan(alone, net, schema, workers, shards, threads, prefetchThreads, steps,
        Epochs.NONE, seed, "", 0, null, null, "", timeoutMillis, encrypt, connection, settings,
        survivors, false);
  }

  /** Hex digits that tell apart trainings whose weights differ; {@code rows}: those of the table. */
  public String fingerprint(String rows) {
    ObjectNode all = Json.object().put("rows", rows);
    all.put("solver", solver).put("net", net).put("shards", shards);
    all.put("max_iter", maxIter).put("epochs", epochs.toString());
    all.put("seed", seed).set("model", model == null ? null : model.toJson());
    all.set("state", state == null ? null : state.toJson());
    settings.addTo(all);
    all.set("schema", schema.toJson());
    schema.addTo(all);
    if (schema.skipsBadRows()) all.put("skip_bad_rows", true);
    UUID hash = UUID.nameUUIDFromBytes(all.toString().getBytes(StandardCharsets.UTF_8));
    return hash.toString().replace("-", "").substring(0, FINGERPRINT);
  }

  /**
   * The options of one rank's cafetiere.core.Trainer. Any of the survivors may become rank 0, so all
   * of them are told that they have its listener. {@code folder} of this machine is for what leaves
   * as files; {@code snapshots}: whether the solver's interval counts beside the plan's own.
   */
  public String trainerOptions(int rank, Path folder, boolean snapshots) {
    ObjectNode options = Json.object();
    options.put("solver", solver).put("net", net);
    options.put("rank", survivors ? 0 : rank).put("size", workers);
    options.put("shards", shards).put("threads", threads).put("seed", seed);
    options.put("prefetch_threads", prefetchThreads);
    options.put("max_iter", maxIter).put("checkpoint_every", checkpointInterval);
    settings.addTo(options);
    if (survivors) options.put("survivors", 1);
    if (snapshots) options.put("snapshots", 1);
    options.put("checkpoint_folder", folder.toString());
    schema.addTo(options);
    return options.toString();
  }

  /**
   * The options of one rank's cafetiere.core.Group, of {@code size} ranks, which listens at
   * {@code bind} on one of {@code ports}.
   */
  public String groupOptions(int rank, int size, String bind, PortRange ports, String secret,
      String generation) {
    ObjectNode options = Json.object();
    options.put("rank", rank).put("size", size).put("bind", bind);
    options.put("ports", ports.option()).put("secret", secret);
    options.put("generation", generation).put("timeout_ms", timeoutMillis);
    options.put("encrypt", encrypt ? 1 : 0).put("connection", connection);
    return options.toString();
  }
}
