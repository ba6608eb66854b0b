// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.cluster;

import cafetiere.spark.internal.SparkInternals;
import java.util.OptionalInt;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;

/** How many tasks can run at once: in the executors that are there, and by the settings. */
public final class ClusterSlots {
  private static final int POLL_MILLIS = 200;
  private static final int MANAGED_EXECUTORS = 2;  // as YARN and Kubernetes start by default
  private static final Pattern LOCAL = Pattern.compile("local(?:\\[([0-9]+|\\*)(?:,.*)?])?");
  private static final Pattern LOCAL_CLUSTER =
      Pattern.compile("local-cluster\\[\\s*(\\d+)\\s*,\\s*(\\d+)\\s*,.*");

  private ClusterSlots() {}

  /** Tasks that can run now; the default parallelism tells where Spark's own number is not found. */
  public static int available(SparkContext sc) {
    return SparkInternals.taskSlots(sc).orElseGet(
        () -> sc.defaultParallelism() / sc.getConf().getInt("spark.task.cpus", 1));
  }

  /**
   * The number that all executors of the settings will bring; empty where the settings do not tell.
   * With dynamic allocation that is the most there may be or, where there is no limit, those it begins
   * with.
   */
  public static OptionalInt configured(String master, SparkConf conf) {
    int taskCpus = conf.getInt("spark.task.cpus", 1);
    Matcher local = LOCAL.matcher(master);
    Matcher cluster = LOCAL_CLUSTER.matcher(master);
    int slots = 0;
    if (local.matches()) {
      slots = localCores(local.group(1)) / taskCpus;
    } else if (cluster.matches()) {
      int workers = Integer.parseInt(cluster.group(1));
      slots = Math.min(workers * slots(Integer.parseInt(cluster.group(2)), conf, taskCpus),
          slots(conf.getInt("spark.cores.max", Integer.MAX_VALUE), conf, taskCpus));
    } else if (master.startsWith("spark:")) {
      slots = slots(conf.getInt("spark.cores.max", 0), conf, taskCpus);
    } else if (isManaged(master)) {
      slots = executors(conf) * (conf.getInt("spark.executor.cores", 1) / taskCpus);
    }
    return slots > 0 ? OptionalInt.of(slots) : OptionalInt.empty();
  }

  /** Whether a resource manager starts the executors and ends those that take too much memory. */
  public static boolean isManaged(String master) {
    return master.startsWith("yarn") || master.startsWith("k8s");
  }

  private static int localCores(String number) {
    if (number == null) return 1;
    return number.equals("*") ? Runtime.getRuntime().availableProcessors()
        : Integer.parseInt(number);
  }

  /** What executors that share some cores can run; one has all of them unless settings say it. */
  private static int slots(int cores, SparkConf conf, int taskCpus) {
    int each = conf.getInt("spark.executor.cores", cores);
    return each == 0 ? 0 : cores / each * (each / taskCpus);
  }

  private static int executors(SparkConf conf) {
    int instances = conf.getInt("spark.executor.instances", 0);
    if (!conf.getBoolean("spark.dynamicAllocation.enabled", false)) {
      return instances > 0 ? instances : MANAGED_EXECUTORS;
    }
    int first = Math.max(instances, Math.max(conf.getInt("spark.dynamicAllocation.minExecutors", 0),
        conf.getInt("spark.dynamicAllocation.initialExecutors", 0)));
    return conf.getInt("spark.dynamicAllocation.maxExecutors", Math.max(1, first));
  }

  /** Waits until {@code wanted} tasks can run or the time is over; the number there is then. */
  public static int await(SparkContext sc, int wanted, long timeout, TimeUnit unit)
      throws InterruptedException {
    return await(sc, wanted, timeout, unit, () -> false);
  }

  /** The same, which ends as well when {@code givesUp} says that no more will come. */
  public static int await(SparkContext sc, int wanted, long timeout, TimeUnit unit,
      BooleanSupplier givesUp) throws InterruptedException {
    long end = System.nanoTime() + unit.toNanos(timeout);
    int slots = available(sc);
    while (slots < wanted && System.nanoTime() < end && !givesUp.getAsBoolean()) {
      Thread.sleep(POLL_MILLIS);
      slots = available(sc);
    }
    return slots;
  }
}
