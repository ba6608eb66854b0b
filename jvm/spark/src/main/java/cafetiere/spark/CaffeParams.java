// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.spark.util.ParamChecks;
import org.apache.spark.ml.param.BooleanParam;
import org.apache.spark.ml.param.IntParam;
import org.apache.spark.ml.param.LongParam;
import org.apache.spark.ml.param.Param;

/** The params of a CaffeEstimator. */
public interface CaffeParams extends SyncParams {
  /** The solver's prototxt. */
  default Param<String> solver() {
    return new Param<>(this, "solver", "text of the solver's prototxt");
  }

  /** Weights to start from. */
  default Param<String> weights() {
    return new Param<>(this, "weights",
        "path of a caffemodel to start from; \"\": the net's fillers");
  }

  /** Solver state to go on from. */
  default Param<String> snapshot() {
    return new Param<>(this, "snapshot",
        "path of a solverstate to go on from, with weights; \"\": step 0");
  }

  /** Ranks. */
  default IntParam numWorkers() {
    return new IntParam(this, "numWorkers",
        "tasks that train together; 0: as many as can run at once",
        ParamChecks.atLeast("numWorkers", 0));
  }

  /** Shards. */
  default IntParam shards() {
    return new IntParam(this, "shards", "shards of the data, each with the net's batch; the weights"
        + " depend on them and not on numWorkers; 0: numWorkers",
        ParamChecks.atLeast("shards", 0));
  }

  /** Steps. */
  default LongParam maxIter() {
    return new LongParam(this, "maxIter", "steps to train to; 0: the solver's max_iter, or epochs",
        ParamChecks.atLeast("maxIter", 0));
  }

  /** Passes over the table. */
  default IntParam epochs() {
    return new IntParam(this, "epochs", "passes over the table, instead of maxIter; 0: not used",
        ParamChecks.atLeast("epochs", 0));
  }

  /** Whether the CPU will not do. */
  default BooleanParam requireGpu() {
    return new BooleanParam(this, "requireGpu",
        "refuse to train without a GPU, instead of using the CPU");
  }

  /** The seed. */
  default LongParam seed() {
    return new LongParam(this, "seed",
        "seed of everything random, unless the solver has random_seed",
        ParamChecks.atLeast("seed", 0));
  }

  /** Where checkpoints go. */
  default Param<String> checkpointDir() {
    return new Param<>(this, "checkpointDir", "Hadoop path for checkpoints, reachable by driver and"
        + " executors; \"\": Spark's checkpoint folder");
  }

  /** Whether an interrupted fit is taken up. */
  default BooleanParam resume() {
    return new BooleanParam(this, "resume", "go on from the newest checkpoint of an interrupted fit"
        + " with the same solver, net, columns, shards and seed in checkpointDir; give it the same"
        + " table");
  }

  /** Steps between checkpoints. */
  default LongParam checkpointInterval() {
    return new LongParam(this, "checkpointInterval", "steps from one checkpoint to the next; 0: the"
        + " solver's snapshot",
        ParamChecks.atLeast("checkpointInterval", 0));
  }

  /** The column that picks the validation rows. */
  default Param<String> validationIndicatorCol() {
    return new Param<>(this, "validationIndicatorCol",
        "boolean column, true for rows that are not trained on but tested on, every test_interval"
        + " steps of the solver or once an epoch; \"\": none");
  }

  /** Where the driver writes events. */
  default Param<String> events() {
    return new Param<>(this, "events",
        "path prefix of JSONL and TensorBoard files that the driver writes; \"\": none");
  }

  /** Silence that counts as a loss. */
  default IntParam peerTimeout() {
    return new IntParam(this, "peerTimeout",
        "milliseconds of silence of a peer that count as its loss",
        ParamChecks.atLeast("peerTimeout", 1));
  }

  /** The solver's prototxt. */
  default String getSolver() {
    return getOrDefault(solver());
  }

  /** Weights to start from. */
  default String getWeights() {
    return getOrDefault(weights());
  }

  /** Solver state to go on from. */
  default String getSnapshot() {
    return getOrDefault(snapshot());
  }

  /** Ranks. */
  default int getNumWorkers() {
    return (int) getOrDefault(numWorkers());
  }

  /** Shards. */
  default int getShards() {
    return (int) getOrDefault(shards());
  }

  /** Steps. */
  default long getMaxIter() {
    return (long) getOrDefault(maxIter());
  }

  /** Passes over the table. */
  default int getEpochs() {
    return (int) getOrDefault(epochs());
  }

  /** Whether the CPU will not do. */
  default boolean getRequireGpu() {
    return (boolean) getOrDefault(requireGpu());
  }

  /** The seed. */
  default long getSeed() {
    return (long) getOrDefault(seed());
  }

  /** Where checkpoints go. */
  default String getCheckpointDir() {
    return getOrDefault(checkpointDir());
  }

  /** Whether an interrupted fit is taken up. */
  default boolean getResume() {
    return (boolean) getOrDefault(resume());
  }

  /** Steps between checkpoints. */
  default long getCheckpointInterval() {
    return (long) getOrDefault(checkpointInterval());
  }

  /** The column that picks the validation rows. */
  default String getValidationIndicatorCol() {
    return getOrDefault(validationIndicatorCol());
  }

  /** Where the driver writes events. */
  default String getEvents() {
    return getOrDefault(events());
  }

  /** Silence that counts as a loss. */
  default int getPeerTimeout() {
    return (int) getOrDefault(peerTimeout());
  }

  /** Sets the defaults of these params; for constructors. */
  default void setTrainingDefaults() {
    setPredictionDefaults();
    setSyncDefaults();
    setDefault(solver(), "");
    setDefault(weights(), "");
    setDefault(snapshot(), "");
    setDefault(numWorkers(), 0);
    setDefault(shards(), 0);
    setDefault(maxIter(), 0L);
    setDefault(epochs(), 0);
    setDefault(requireGpu(), false);
    setDefault(seed(), 1L);
    setDefault(checkpointDir(), "");
    setDefault(resume(), false);
    setDefault(checkpointInterval(), 0L);
    setDefault(validationIndicatorCol(), "");
    setDefault(events(), "");
    setDefault(peerTimeout(), 6000);
  }
}
