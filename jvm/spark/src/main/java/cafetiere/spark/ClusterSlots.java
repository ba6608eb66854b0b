// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.lang.reflect.Method;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.resource.ResourceProfile;

/** How many tasks the registered executors can run at once. */
final class ClusterSlots {
  private static final int POLL_MILLIS = 200;

  private ClusterSlots() {}

  /**
   * The number that Spark itself compares a barrier stage with. Spark keeps the method to itself,
   * so it is called by name; the default parallelism stands in where a version lacks it.
   */
  static int available(SparkContext sc) {
    try {
      Object manager = SparkContext.class.getMethod("resourceProfileManager").invoke(sc);
      Method profile = manager.getClass().getMethod("defaultResourceProfile");
      Method slots = SparkContext.class.getMethod("maxNumConcurrentTasks", ResourceProfile.class);
      return (int) slots.invoke(sc, profile.invoke(manager));
    } catch (ReflectiveOperationException e) {
      return sc.defaultParallelism() / sc.getConf().getInt("spark.task.cpus", 1);
    }
  }

  /** Waits until {@code wanted} tasks can run or the time is over; the number there is then. */
  static int await(SparkContext sc, int wanted, long timeout, TimeUnit unit)
      throws InterruptedException {
    long end = System.nanoTime() + unit.toNanos(timeout);
    int slots = available(sc);
    while (slots < wanted && System.nanoTime() < end) {
      Thread.sleep(POLL_MILLIS);
      slots = available(sc);
    }
    return slots;
  }
}
