// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.feed;

import cafetiere.core.Rows;
import cafetiere.spark.cluster.ClusterSlots;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.util.Json;
import com.sun.management.OperatingSystemMXBean;
import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalLong;
import org.apache.spark.SparkConf;

/**
 * The native memory that rows may take in an executor, of all its tasks together. Rows beyond it go to
 * files in Spark's local folder: the weights are the same.
 */
public final class RowRoom {
  /** Native memory for rows in each executor, as a size of Spark's. */
  public static final String SETTING = "spark.cafetiere.rowMemory";

  private static final String OVERHEAD = "spark.executor.memoryOverhead";
  private static final String OVERHEAD_FACTOR = "spark.executor.memoryOverheadFactor";
  /** For an executor on Kubernetes that has no factor of its own. */
  private static final String KUBERNETES_FACTOR = "spark.kubernetes.memoryOverheadFactor";
  private static final String KUBERNETES = "k8s";
  private static final double DEFAULT_FACTOR = 0.1;
  private static final String LEAST_OVERHEAD = "spark.executor.minMemoryOverhead";
  private static final String DEFAULT_LEAST_OVERHEAD = "384m";
  private static final int PART_OF_OVERHEAD = 2;
  private static final int PART_OF_MACHINE = 4;
  private static final Map<String, Rows.Budget> BUDGETS = new HashMap<>();

  private RowRoom() {}

  /** Whether an executor that takes more memory than its overhead is ended. */
  public static boolean isLimited(SparkConf conf) {
    return ClusterSlots.isManaged(conf.get("spark.master", "")) || conf.contains(OVERHEAD);
  }

  /** MiB beside the heap of an executor. */
  public static long overheadMib(SparkConf conf) {
    long heap = conf.getSizeAsMb("spark.executor.memory", "1g");
    long least = conf.getSizeAsMb(LEAST_OVERHEAD, DEFAULT_LEAST_OVERHEAD);
    long byDefault = Math.max(least, (long) (factor(conf) * heap));
    return conf.getSizeAsMb(OVERHEAD, byDefault + "m");
  }

  private static double factor(SparkConf conf) {
    boolean isKubernetes = conf.get("spark.master", "").startsWith(KUBERNETES);
    double byDefault =
        isKubernetes ? conf.getDouble(KUBERNETES_FACTOR, DEFAULT_FACTOR) : DEFAULT_FACTOR;
    return conf.getDouble(OVERHEAD_FACTOR, byDefault);
  }

  /** Bytes for the rows of an executor, where settings tell; else a quarter of its machine's. */
  public static OptionalLong bytes(SparkConf conf) {
    if (conf.contains(SETTING)) return OptionalLong.of(conf.getSizeAsBytes(SETTING));
    if (!isLimited(conf)) return OptionalLong.empty();
    return OptionalLong.of((overheadMib(conf) << 20) / PART_OF_OVERHEAD);
  }

  /** An empty table in this executor. */
  public static Rows open(FeedSchema schema) {
    return new Rows(schema.toJson().toString(), budget());
  }

  private static synchronized Rows.Budget budget() {
    long bytes = bytes(SparkInternals.executorConf()).orElseGet(
        () -> ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class)
            .getTotalMemorySize() / PART_OF_MACHINE);
    File[] folders = SparkInternals.localFolders();
    return BUDGETS.computeIfAbsent(bytes + " " + folders[0], key -> new Rows.Budget(Json.object()
        .put("bytes", bytes)
        .put("folder", Arrays.stream(folders)
            .max(Comparator.comparingLong(File::getUsableSpace)).orElseThrow().toString())
        .toString()));
  }
}
