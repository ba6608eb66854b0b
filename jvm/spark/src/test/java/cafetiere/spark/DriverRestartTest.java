// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A driver that is killed in mid-run costs the steps since its newest checkpoint, and no bit. */
@Timeout(value = 480, unit = TimeUnit.SECONDS)
class DriverRestartTest {
  private static final int ROWS = 1_007;
  private static final int STEPS = 200;

  @TempDir Path dir;

  @Test
  void theNextDriverGoesOnWithTheSameBits() throws Exception {
    SparkSession spark = TestImages.session();
    Path interrupted = Files.createDirectory(dir.resolve("interrupted"));
    Process driver = DriverProcess.start(
        Driver.class, dir.resolve("log"), interrupted.toUri().toString());
    CompletableFuture<JsonNode> calm = CompletableFuture.supplyAsync(
        () -> fit(spark, dir.resolve("undisturbed").toUri().toString()));
    KillTest.awaitCheckpoint(interrupted);
    assertTrue(driver.isAlive(), "the training ended before its driver");
    driver.destroyForcibly().waitFor();

    JsonNode undisturbed = calm.get();
    JsonNode resumed = fit(spark, interrupted.toUri().toString());
    assertTrue(resumed.path("first_step").asLong() >= 40, resumed.toString());
    assertEquals(0, undisturbed.path("first_step").asLong());
    assertEquals(undisturbed.path("sha256"), resumed.path("sha256"));
    assertFalse(hasEntries(interrupted), "a finished fit leaves nothing to go on from");
  }

  private static JsonNode fit(SparkSession spark, String checkpoints) {
    CaffeModel model = new CaffeEstimator()
        .setSolver(TestImages.solver(STEPS)).setNet(TestImages.lenet())
        .setFeaturesCol("image").setLabelCol("label").setNumWorkers(2).setShards(2)
        .setCheckpointDir(checkpoints).setCheckpointInterval(20).setResume(true)
        .fit(TestImages.images(spark, ROWS));
    return Json.parse(model.result());
  }

  private static boolean hasEntries(Path folder) throws IOException {
    try (Stream<Path> entries = Files.list(folder)) {
      return entries.anyMatch(Files::isDirectory);
    }
  }

  /** The driver that is killed. */
  static final class Driver {
    private Driver() {}

    public static void main(String[] args) throws IOException {
      try (SparkSession spark = SparkSession.builder().appName("restart").master("local[2]")
          .getOrCreate()) {
        fit(spark, args[0]);
      }
    }
  }
}
