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
import java.util.function.Consumer;
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
        .setSyncMode("average").setSyncPeriod(1).setSurvivors(survivors).setCheckpointInterval(1);
    cancelAsItStores(spark, dir, checkpoints ->
        estimator.setCheckpointDir(checkpoints).fit(TestImages.images(spark, 203)));
    assertEquals(count(dir, "-entered"), count(dir, "-left"), "a task still stores a checkpoint");
  }

  /** Ends a fit, which is told a checkpoint folder in {@code dir}, as it puts one in its place. */
  static void cancelAsItStores(SparkSession spark, Path dir, Consumer<String> fit) {
    CompletableFuture<Void> cancelled = CompletableFuture.runAsync(() -> {
      awaitMark(dir);
      spark.sparkContext().cancelAllJobs();
    });
    String checkpoints = SlowFiles.path(spark.sparkContext(), dir);
    assertThrows(Exception.class, () -> fit.accept(checkpoints));
    cancelled.join();
  }

  private static void awaitMark(Path dir) {
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
