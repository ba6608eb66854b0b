// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.spark.util.ParamChecks;
import org.apache.spark.ml.param.BooleanParam;
import org.apache.spark.ml.param.IntParam;
import org.apache.spark.ml.param.Param;

/** The params of how the ranks of a CaffeEstimator work together. */
public interface SyncParams extends PredictionParams {
  /** How the ranks keep in step. */
  default Param<String> syncMode() {
    return new Param<>(this, "syncMode", "how the ranks keep in step: allreduce, average, easgd,"
        + " diloco, hierarchical or auto; \"\": what the solver's sync { } says, else allreduce",
        ParamChecks.oneOf("syncMode", ParamChecks.SYNC_MODES));
  }

  /** Iterations between exchanges. */
  default IntParam syncPeriod() {
    return new IntParam(this, "syncPeriod", "iterations from one exchange to the next, of modes"
        + " whose replicas train on their own between them; 0: the solver's, else 10",
        ParamChecks.atLeast("syncPeriod", 0));
  }

  /** What becomes of the replicas' history. */
  default Param<String> syncHistory() {
    return new Param<>(this, "syncHistory", "what becomes of the replicas' history at an exchange:"
        + " kept, averaged or reset; \"\": what the solver says, else kept",
        ParamChecks.oneOf("syncHistory", ParamChecks.SYNC_HISTORIES));
  }

  /** The rest of the settings. */
  default Param<String> syncOptions() {
    return new Param<>(this, "syncOptions", "further fields of the solver's sync { } as prototxt,"
        + " such as \"moving_rate: 0.1 wire: 'bfloat16'\"");
  }

  /** DeepSpark's parameter file. */
  default Param<String> syncParamFile() {
    return new Param<>(this, "syncParamFile", "Hadoop path of a DeepSparkParam file (period,"
        + " moving_rate, ...), for easgd unless syncMode names another mode; \"\": none");
  }

  /** Whether the training goes on while executors are lost and come back. */
  default BooleanParam survivors() {
    return new BooleanParam(this, "survivors", "average, easgd, diloco: when an executor is lost"
        + " the others go on without its rows, and it joins again when it is back, instead of a"
        + " new attempt of all from the newest checkpoint");
  }

  /** What carries the training. */
  default Param<String> engine() {
    return new Param<>(this, "engine", "what carries the training: barrier, one stage whose tasks"
        + " talk to each other; or rounds, for average and diloco: ordinary jobs, which need no port"
        + " between executors and take these as they come and go",
        ParamChecks.oneOf("engine", ParamChecks.ENGINES));
  }

  /** Whether what travels between the ranks is encrypted. */
  default Param<String> encrypt() {
    return new Param<>(this, "encrypt", "whether what travels between the ranks is encrypted (TLS"
        + " 1.3): on, off, or auto: when Spark's own traffic is, by spark.network.crypto.enabled,"
        + " spark.ssl.rpc.enabled or spark.ssl.enabled",
        ParamChecks.oneOf("encrypt", ParamChecks.ENCRYPTIONS));
  }

  /** What connects the ranks of different hosts. */
  default Param<String> connection() {
    return new Param<>(this, "connection", "what connects the ranks of different hosts: ethernet"
        + " (TCP), or infiniband: UCX if all executors have its library, libucp.so.0, and encrypt is"
        + " off, else TCP", ParamChecks.oneOf("connection", ParamChecks.CONNECTIONS));
  }

  /** How the ranks keep in step. */
  default String getSyncMode() {
    return getOrDefault(syncMode());
  }

  /** Iterations between exchanges. */
  default int getSyncPeriod() {
    return (int) getOrDefault(syncPeriod());
  }

  /** What becomes of the replicas' history. */
  default String getSyncHistory() {
    return getOrDefault(syncHistory());
  }

  /** The rest of the settings. */
  default String getSyncOptions() {
    return getOrDefault(syncOptions());
  }

  /** DeepSpark's parameter file. */
  default String getSyncParamFile() {
    return getOrDefault(syncParamFile());
  }

  /** Whether the training goes on while executors are lost and come back. */
  default boolean getSurvivors() {
    return (boolean) getOrDefault(survivors());
  }

  /** What carries the training. */
  default String getEngine() {
    return getOrDefault(engine());
  }

  /** Whether what travels between the ranks is encrypted. */
  default String getEncrypt() {
    return getOrDefault(encrypt());
  }

  /** What connects the ranks of different hosts. */
  default String getConnection() {
    return getOrDefault(connection());
  }

  /** Sets the defaults of these params; for constructors. */
  default void setSyncDefaults() {
    setDefault(syncMode(), "");
    setDefault(syncPeriod(), 0);
    setDefault(syncHistory(), "");
    setDefault(syncOptions(), "");
    setDefault(syncParamFile(), "");
    setDefault(survivors(), false);
    setDefault(engine(), "barrier");
    setDefault(encrypt(), "auto");
    setDefault(connection(), "ethernet");
  }
}
