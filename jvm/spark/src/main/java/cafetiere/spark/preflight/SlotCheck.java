// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.preflight;

import cafetiere.spark.cluster.ClusterSlots;
import cafetiere.spark.cluster.YarnQueue;
import cafetiere.spark.feed.RowRoom;
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
    int configured = ClusterSlots.configured(master(), conf).orElse(0);
    int wait = configured >= workers ? START_SECONDS : SLOT_SECONDS;
    // Where the settings tell how many will come nobody waits for more of them.
    int expected = configured > 0 ? Math.min(configured, workers) : workers;
    try (YarnQueue queue = new YarnQueue(sc, executors(), executorMib())) {
      int slots = ClusterSlots.await(sc, expected, wait, TimeUnit.SECONDS,
          () -> failed.any() || queue.full().isPresent());
      return slots >= workers ? Optional.empty()
          : failed.finding().or(() -> queue.full().map(this::noRoom))
              .or(() -> Optional.of(tooFew(slots)));
    } catch (InterruptedException e) {
      throw Unchecked.rethrow(e);
    }
  }

  private String noRoom(YarnQueue.Full full) {
    int slots = full.executors() * slotsEach();
    return "the training needs " + workers + " tasks at once (numWorkers), YARN has given "
        + full.executors() + " executors, and " + full.place() + " has no room for another one of "
        + executorMib() + " MiB (" + full.used() + " of " + full.most() + " MiB are used): wait until"
        + " other applications end, or add --queue with the name of one that has room"
        + (slots > 0 ? ", or set numWorkers to " + slots : "");
  }

  /** At least: off-heap memory and Python come on top. */
  private long executorMib() {
    return conf.getSizeAsMb("spark.executor.memory", "1g") + RowRoom.overheadMib(conf);
  }

  private int slotsEach() {
    return Math.max(1, conf.getInt("spark.executor.cores", 1) / conf.getInt("spark.task.cpus", 1));
  }

  private int executors() {
    return (workers + slotsEach() - 1) / slotsEach();
  }

  private String tooFew(int slots) {
    int taskCpus = conf.getInt("spark.task.cpus", 1);
    return "the training needs " + workers + " tasks at once (numWorkers) and the cluster can run "
        + slots + " (spark.task.cpus=" + taskCpus + "): add " + settingForMore(taskCpus)
        + " or set numWorkers to " + Math.max(1, slots);
  }

  private String master() {
    return conf.get("spark.master");
  }

  private String settingForMore(int taskCpus) {
    int cores = workers * taskCpus;
    if (master().startsWith("local-cluster")) {
      return "--master 'local-cluster[" + workers + "," + taskCpus + ",2048]'";
    }
    if (sc.isLocal()) return "--master 'local[" + cores + "]'";
    if (ClusterSlots.isManaged(master())) return "--conf spark.executor.instances=" + executors();
    return "workers to the cluster, or --conf spark.cores.max=" + cores;
  }
}
