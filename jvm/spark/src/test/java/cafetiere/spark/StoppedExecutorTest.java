// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * An executor that is stopped (SIGSTOP) in mid-run of the rounds engine is replaced, and its rounds
 * are repeated to the same bits. Spark itself would wait for it longer than this test may take.
 */
@Timeout(value = 480, unit = TimeUnit.SECONDS)
class StoppedExecutorTest {
  private static final int ROWS = 1_007;
  private static final int STEPS = 100;
  private static final int STOP_AFTER_JOBS = 10;

  @TempDir Path dir;

  @Test
  void itsRoundsAreRepeatedToTheSameBits() throws Exception {
    Process driver = DriverProcess.start(Driver.class, dir.resolve("log"), dir.toString());
    assertEquals(0, driver.waitFor(), () -> DriverProcess.read(dir.resolve("log")));
    JsonNode answer = Json.parse(DriverProcess.read(dir.resolve("answer")));
    assertTrue(answer.path("stopped").asBoolean(), "the training ended before");
    assertEquals(answer.path("calm"), answer.path("disturbed"));
  }

  /** Trains twice, with an executor stopped in the second run. */
  static final class Driver {
    private Driver() {}

    public static void main(String[] args) throws Exception {
      try (SparkSession spark = SparkSession.builder().appName("stopped executor")
          .master("local-cluster[2,1,512]").config("spark.executor.memory", "512m")
          .config("spark.network.timeout", "1h").getOrCreate()) {
        ClusterSlots.await(spark.sparkContext(), TestImages.EXECUTORS, 120, TimeUnit.SECONDS);
        Dataset<Row> table = TestImages.images(spark, ROWS);
        String calm = sha256(table);
        long victim = TestImages.executorPids(spark).get(0);
        try (AfterJobs stop = new AfterJobs(spark.sparkContext(), STOP_AFTER_JOBS,
            () -> Processes.signal("STOP", victim))) {
          String disturbed = sha256(table);
          Files.writeString(Path.of(args[0], "answer"), Json.object().put("calm", calm)
              .put("disturbed", disturbed).put("stopped", stop.done()).toString());
        } finally {
          ProcessHandle.of(victim).ifPresent(ProcessHandle::destroyForcibly);
        }
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
}
