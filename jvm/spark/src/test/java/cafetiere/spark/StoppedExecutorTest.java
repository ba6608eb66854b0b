// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.util.Json;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * An executor that is stopped (SIGSTOP) in mid-run of the rounds engine is replaced, and its rounds
 * are repeated to the same bits. Spark itself would wait for it longer than this test may take.
 */
@LongRun
@Timeout(value = 480, unit = TimeUnit.SECONDS)
class StoppedExecutorTest {
  private static final int ROWS = 1_007;
  private static final int STEPS = 100;
  private static final int STOP_AFTER_JOBS = 10;

  @Test
  void itsRoundsAreRepeatedToTheSameBits() {
    SparkSession spark = TestImages.session();
    Dataset<Row> table = TestImages.images(spark, ROWS);
    String calm = sha256(table);
    long victim = TestImages.executorPids(spark).get(0);
    try (AfterJobs stop = new AfterJobs(spark.sparkContext(), STOP_AFTER_JOBS,
        () -> Processes.signal("STOP", victim))) {
      String disturbed = sha256(table);
      assertTrue(stop.done(), "the training ended before");
      assertEquals(calm, disturbed);
    } finally {
      ProcessHandle.of(victim).ifPresent(ProcessHandle::destroyForcibly);
    }
  }

  private static String sha256(Dataset<Row> table) {
    CaffeModel model = new CaffeEstimator()
        .setSolver(TestImages.solver(STEPS)).setNet(TestImages.lenet())
        .setFeaturesCol("image").setLabelCol("label").setEngine("rounds").setSyncMode("average")
        .setSyncPeriod(5).setShards(TestImages.EXECUTORS).fit(table);
    return Json.parse(model.result()).path("sha256").asText();
  }
}
