// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.plan;

import cafetiere.spark.PreflightException;
import cafetiere.spark.cluster.ClusterSlots;
import cafetiere.spark.util.Unchecked;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.TimeUnit;
import java.util.function.IntSupplier;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Workers and shards of a training. Where its params leave them open they follow the cluster's
 * settings: the weights depend on the shards, which must not depend on how many executors happen to
 * be there when a fit begins.
 *
 * @param workers ranks to begin with
 * @param shards shards of the rows
 */
public record Parallelism(int workers, int shards) {
  private static final Logger LOG = LoggerFactory.getLogger(Parallelism.class);
  private static final long WAIT_SECONDS = 30;

  /**
   * For the params numWorkers and shards, 0 where one is not set. Waits for executors that the
   * settings promise, for half a minute at most, unless they come with the work to do.
   */
  public static Parallelism of(SparkContext sc, int numWorkers, int shards) {
    SparkConf conf = sc.getConf();
    boolean waits = !conf.getBoolean("spark.dynamicAllocation.enabled", false);
    int configured = ClusterSlots.configured(sc.master(), conf).orElse(1);
    int wanted = shards > 0 ? Math.min(shards, configured) : configured;
    return of(sc.master(), conf, numWorkers, shards, () -> {
      try {
        return ClusterSlots.await(sc, wanted, waits ? WAIT_SECONDS : 0, TimeUnit.SECONDS);
      } catch (InterruptedException e) {
        throw Unchecked.rethrow(e);
      }
    });
  }

  /** The same; {@code slots} tells how many tasks the executors that have come can run at once. */
  public static Parallelism of(String master, SparkConf conf, int numWorkers, int shards,
      IntSupplier slots) {
    if (numWorkers > 0) return new Parallelism(numWorkers, shards > 0 ? shards : numWorkers);
    OptionalInt configured = ClusterSlots.configured(master, conf);
    int there = slots.getAsInt();
    if (configured.isEmpty() && shards == 0) throw unknown(master, there);
    int given = shards > 0 ? shards : configured.getAsInt();
    int most = Math.min(given, configured.orElse(Math.max(1, there)));
    int workers = there == 0 ? most : Math.min(there, most);
    LOG.info("numWorkers is not set: {} shards{}, and {} workers of {} that the cluster's settings"
        + " allow", given, shards > 0 ? "" : " by the same settings", workers, most);
    return new Parallelism(workers, given);
  }

  private static PreflightException unknown(String master, int there) {
    return new PreflightException(List.of("numWorkers is not set, and the settings of " + master
        + " do not tell how many tasks will run at once: set numWorkers (the executors that are"
        + " there now run " + there + "), or add --conf spark.cores.max=N"));
  }
}
