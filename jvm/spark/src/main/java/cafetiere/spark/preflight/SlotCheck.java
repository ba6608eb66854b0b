// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.preflight;

import cafetiere.spark.cluster.ClusterSlots;
import cafetiere.spark.util.Unchecked;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;

/**
 * Whether all ranks can run at once.
 *
 * @param conf the settings that hold, the session's own but in tests
 * @param workers ranks
 * @param survivors whether they may be lost and come back
 */
record SlotCheck(SparkContext sc, SparkConf conf, int workers, boolean survivors) {
  private static final int SLOT_SECONDS = 4;
  private static final int START_SECONDS = 60;

  /** Why they cannot; waits for executors that the settings promise, unless they fail to start. */
  Optional<String> find(FailedStarts failed) {
    if (!sc.isLocal() && conf.getBoolean("spark.dynamicAllocation.enabled", false)) {
      return Optional.of("dynamic allocation is on, and " + (survivors
          ? "the executors of survivors have to be there before their first job"
          : "Spark runs no barrier stage under it") + ": add"
          + " --conf spark.dynamicAllocation.enabled=false --conf spark.executor.instances="
          + workers + (survivors ? ", or set engine to rounds" : ""));
    }
    int configured = ClusterSlots.configured(sc.master(), conf).orElse(0);
    int wait = configured >= workers ? START_SECONDS : SLOT_SECONDS;
    // Where the settings tell how many will come nobody waits for more of them.
    int expected = configured > 0 ? Math.min(configured, workers) : workers;
    try {
      int slots = ClusterSlots.await(sc, expected, wait, TimeUnit.SECONDS, failed::any);
      return slots >= workers ? Optional.empty()
          : failed.finding().or(() -> Optional.of(tooFew(slots)));
    } catch (InterruptedException e) {
      throw Unchecked.rethrow(e);
    }
  }

  private String tooFew(int slots) {
    int taskCpus = conf.getInt("spark.task.cpus", 1);
    return "the training needs " + workers + " tasks at once (numWorkers) and the cluster can run "
        + slots + " (spark.task.cpus=" + taskCpus + "): add " + settingForMore(taskCpus)
        + " or set numWorkers to " + Math.max(1, slots);
  }

  private String settingForMore(int taskCpus) {
    int cores = workers * taskCpus;
    if (sc.master().startsWith("local-cluster")) {
      return "--master 'local-cluster[" + workers + "," + taskCpus + ",2048]'";
    }
    if (sc.isLocal()) return "--master 'local[" + cores + "]'";
    if (ClusterSlots.isManaged(sc.master())) {
      int perExecutor = Math.max(1, conf.getInt("spark.executor.cores", 1) / taskCpus);
      int executors = (workers + perExecutor - 1) / perExecutor;
      return "--conf spark.executor.instances=" + executors;
    }
    return "workers to the cluster, or --conf spark.cores.max=" + cores;
  }
}
