// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.internal;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.BothLines;
import cafetiere.spark.TestImages;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What Spark does not promise to keep, on each of its lines. */
@BothLines
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class SparkInternalsTest {
  private final SparkContext sc = TestImages.session().sparkContext();

  @Test
  void aCancelledJobIsKnownFromOneThatFailed() {
    SparkListener cancels = new SparkListener() {
      @Override
      public void onTaskStart(SparkListenerTaskStart start) {
        sc.cancelAllJobs();
      }
    };
    sc.addSparkListener(cancels);
    try {
      assertTrue(SparkInternals.isCancelled(
          assertThrows(Exception.class, () -> run(task -> Thread.sleep(1_000)))));
    } finally {
      sc.removeSparkListener(cancels);
    }
    assertFalse(SparkInternals.isCancelled(assertThrows(Exception.class, () -> run(task -> {
      throw new IllegalStateException("Job 7 cancelled");
    }))));
  }

  @Test
  void listenersHaveHeardWhatHasHappened() {
    assertTrue(SparkInternals.awaitEvents(sc, 30_000));
  }

  private void run(org.apache.spark.api.java.function.VoidFunction<Integer> work) {
    JavaSparkContext.fromSparkContext(sc).parallelize(List.of(1), 1).foreach(work);
  }
}
