// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.internal.MetricsSource;
import cafetiere.spark.ml.CaffeRegressor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A fit whose SparkContext is stopped fails and says so, and none of its tasks goes on in the driver. */
@BothLines
@Timeout(value = 240, unit = TimeUnit.SECONDS)
class StoppedContextTest {
  private static final List<String> KINDS = List.of("allreduce", "survivors", "rounds");
  private static final String TOLD = "cafetiere test: ";
  private static final String LEFT = "task folders are left";

  @TempDir Path dir;

  @Test
  void aFitEndsWithItsContext() throws Exception {
    Path log = dir.resolve("log");
    Process driver = DriverProcess.start(Driver.class, log, dir.toString());
    boolean isOver = driver.waitFor(180, TimeUnit.SECONDS);
    driver.destroyForcibly();
    String text = DriverProcess.read(log);
    assertTrue(isOver && driver.exitValue() == 0, text);
    List<String> told = text.lines().filter(line -> line.startsWith(TOLD)).toList();
    assertEquals(KINDS.size() + 2, told.size(), text);
    told.forEach(line -> {
      // Between two jobs of the rounds, Spark refuses the next one.
      String words = line.contains("rounds") ? ".*(stopped|shutdown|shut down).*"
          : ".*SparkContext was (stopped before|shut down).*";
      assertTrue(line.matches(words), line + "\n" + text);
      assertFalse(line.contains(LEFT), line + "\n" + text);
    });
  }

  /** The driver whose contexts are stopped. */
  static final class Driver {
    private static final int MOST_MILLIS = 30_000;
    private static Path dir;

    private Driver() {}

    public static void main(String[] args) throws Exception {
      dir = Path.of(args[0]);
      for (String kind : KINDS) stopInMidRun(kind);
      tell("before: " + failure(MetricsSource::ofApplication));
      stopAtFirstJobOfKeys();
      System.exit(0);  // what still trains would keep the process
    }

    private static void stopInMidRun(String kind) throws Exception {
      Path checkpoints = Files.createDirectory(dir.resolve(kind));
      SparkSession spark = session();
      CompletableFuture<Void> stopped = CompletableFuture.runAsync(() -> {
        KillTest.awaitCheckpoint(checkpoints);
        spark.stop();
      });
      String failure = failure(() -> images(kind, checkpoints).fit(TestImages.images(spark, 512)));
      stopped.get();
      long end = System.currentTimeMillis() + MOST_MILLIS;
      while (hasFolders() && System.currentTimeMillis() < end) Thread.sleep(50);
      tell(kind + " in mid-run: " + failure + (hasFolders() ? LEFT : ""));
    }

    /** What Spark then says of a plan that it makes for a stopped context can be anything. */
    private static void stopAtFirstJobOfKeys() throws Exception {
      SparkSession spark = session();
      Dataset<Row> table = spark.range(2_000).selectExpr("id % 20 k", "id x", "id y");
      CountDownLatch begun = new CountDownLatch(1);
      spark.sparkContext().addSparkListener(new SparkListener() {
        @Override
        public void onJobStart(SparkListenerJobStart start) {
          begun.countDown();
        }
      });
      FutureTask<Void> stopped = new FutureTask<>(() -> {
        begun.await();
        spark.stop();
        return null;
      });
      new Thread(stopped).start();
      tell("keys: " + failure(() -> new CaffeRegressor().setLabelCol("y").setGroupCol("k").fit(table)));
      stopped.get();
    }

    private static SparkSession session() {
      return SparkSession.builder().appName("stopped").master("local[2]")
          .config("spark.local.dir", dir.toString()).getOrCreate();
    }

    private static CaffeEstimator images(String kind, Path checkpoints) {
      return new CaffeEstimator()
          .setSolver(TestImages.solver(1_000_000)).setNet(TestImages.lenet())
          .setFeaturesCol("image").setLabelCol("label").setNumWorkers(2)
          .setEngine(kind.equals("rounds") ? kind : "barrier")
          .setSyncMode(kind.equals("allreduce") ? kind : "average").setSurvivors(kind.equals("survivors"))
          .setCheckpointDir(checkpoints.toUri().toString()).setCheckpointInterval(20);
    }

    private static String failure(Runnable fit) {
      try {
        fit.run();
        return "none";
      } catch (Exception e) {
        return e.toString().lines().findFirst().orElse("");
      }
    }

    private static boolean hasFolders() throws IOException {
      try (Stream<Path> entries = Files.list(dir)) {
        return entries.anyMatch(path -> path.getFileName().toString().startsWith("cafetiere-task-"));
      }
    }

    private static void tell(String line) {
      System.out.println(TOLD + line);
    }
  }
}
