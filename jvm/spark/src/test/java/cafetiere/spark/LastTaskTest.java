// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import cafetiere.spark.util.Unchecked;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A fit that ends, however it ends, leaves no task behind that still works for it. */
@Timeout(value = 240, unit = TimeUnit.SECONDS)
class LastTaskTest {
  @TempDir Path dir;

  @BothLines
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aCheckpointBeingStoredIsWaitedFor(boolean survivors) {
    SparkSession spark = TestImages.session();
    CaffeEstimator estimator = new CaffeEstimator()
        .setSolver(TestImages.solver(1_000_000)).setNet(TestImages.lenet())
        .setFeaturesCol("image").setLabelCol("label").setNumWorkers(TestImages.EXECUTORS)
        .setSyncMode("average").setSyncPeriod(1).setSurvivors(survivors)
        .setCheckpointDir(SlowFiles.path(spark.sparkContext(), dir)).setCheckpointInterval(1);
    CompletableFuture<Void> cancelled = CompletableFuture.runAsync(() -> {
      awaitMark(dir);
      spark.sparkContext().cancelAllJobs();
    });
    assertThrows(Exception.class, () -> estimator.fit(TestImages.images(spark, 203)));
    cancelled.join();
    assertEquals(count(dir, "-entered"), count(dir, "-left"), "a task still stores a checkpoint");
  }

  /** Waits until a checkpoint below {@code dir} is being put in its place. */
  static void awaitMark(Path dir) {
    try {
      while (count(dir, "-entered") == 0) Thread.sleep(20);
    } catch (InterruptedException e) {
      throw Unchecked.rethrow(e);
    }
  }

  private static long count(Path dir, String mark) {
    try (Stream<Path> found =
        Files.find(dir, 3, (path, attributes) -> path.toString().endsWith(mark))) {
      return found.count();
    } catch (IOException | UncheckedIOException e) {
      return 0;  // a folder that went while it was looked into
    }
  }
}
