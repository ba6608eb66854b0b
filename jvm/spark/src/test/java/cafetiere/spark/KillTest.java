// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.cluster.ClusterSlots;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * An executor that is killed in mid-run costs some seconds, and not one bit of the weights, also
 * where the rows are shuffled and laid out in another way; {@link FaultTest} has them as they are.
 */
@Timeout(value = 480, unit = TimeUnit.SECONDS)
public class KillTest {
  private static final int ROWS = 1_007;
  private static final int STEPS = 120;
  private static final int CHECKPOINT_EVERY = 20;

  private static SparkSession spark;
  private static String undisturbed;

  @TempDir Path dir;

  @BeforeAll
  static void trainUndisturbed(@TempDir Path checkpoints) throws Exception {
    spark = TestImages.session();
    JsonNode result = fit(TestImages.images(spark, ROWS), checkpoints);
    assertEquals(1, result.path("attempts").asInt());
    assertEquals(TestImages.EXECUTORS, result.path("executors").asInt());
    undisturbed = result.path("sha256").asText();
  }

  @BothLines
  @Test
  void otherPartitionsEndWithTheSameBits() throws Exception {
    assertSameBits(TestImages.images(spark, ROWS).repartition(7));
  }

  @LongRun
  @Test
  void alsoUnderAdaptiveExecutionBehindAShuffle() throws Exception {
    spark.conf().set("spark.sql.adaptive.enabled", "true");
    assertSameBits(TestImages.images(spark, ROWS).groupBy("id", "image", "label").count());
  }

  @Test
  void alsoWithoutAdaptiveExecution() throws Exception {
    spark.conf().set("spark.sql.adaptive.enabled", "false");
    try {
      assertEquals(undisturbed, fit(TestImages.images(spark, ROWS).repartition(5), dir)
          .path("sha256").asText());
    } finally {
      spark.conf().unset("spark.sql.adaptive.enabled");
    }
  }

  private void assertSameBits(Dataset<Row> table) throws Exception {
    ClusterSlots.await(spark.sparkContext(), TestImages.EXECUTORS, 60, TimeUnit.SECONDS);
    long victim = TestImages.executorPids(spark).get(0);
    CompletableFuture<Boolean> killed = CompletableFuture.supplyAsync(() -> {
      awaitCheckpoint(dir);
      // On Linux this is SIGKILL.
      return ProcessHandle.of(victim).map(ProcessHandle::destroyForcibly).orElse(false);
    });
    JsonNode result = fit(table, dir);
    assertTrue(killed.get(), "the executor was gone before it was killed");
    assertEquals(2, result.path("attempts").asInt(), "the training ended before the executor");
    assertEquals(undisturbed, result.path("sha256").asText());
  }

  private static JsonNode fit(Dataset<Row> table, Path checkpoints) {
    return Json.parse(estimator(checkpoints).setShards(4).fit(table).result());
  }

  static CaffeEstimator estimator(Path checkpoints) {
    return new CaffeEstimator()
        .setSolver(TestImages.solver(STEPS)).setNet(TestImages.lenet())
        .setFeaturesCol("image").setLabelCol("label").setNumWorkers(TestImages.EXECUTORS)
        .setCheckpointDir(checkpoints.toUri().toString()).setCheckpointInterval(CHECKPOINT_EVERY);
  }

  public static void awaitCheckpoint(Path dir) {
    try {
      while (!hasCheckpoint(dir)) Thread.sleep(50);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static boolean hasCheckpoint(Path dir) {
    try (Stream<Path> paths = Files.find(dir, 3,
        (path, attributes) -> path.getFileName().toString().matches("step-0*[4-9]\\d+"))) {
      return paths.findAny().isPresent();
    } catch (IOException | UncheckedIOException e) {
      return false;
    }
  }
}
