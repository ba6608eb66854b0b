// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.util.Json;
import cafetiere.spark.util.Unchecked;
import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The rounds engine where Spark adds and removes executors as it likes. */
@LongRun
@Timeout(value = 480, unit = TimeUnit.SECONDS)
class DynamicAllocationTest {
  private static final int ROWS = 1_007;
  private static final int STEPS = 250;

  @TempDir Path dir;

  @Test
  void executorsThatComeAndGoDoNotShowInTheWeights() throws Exception {
    Path log = dir.resolve("log");
    Process driver = DriverProcess.start(Driver.class, log, dir.toString());
    String fixed = Json.parse(fit(TestImages.session(), dir.resolve("fixed")).result())
        .path("sha256").asText();
    assertEquals(0, driver.waitFor(), () -> DriverProcess.read(log));
    JsonNode result = Json.parse(DriverProcess.read(dir.resolve("answer")));
    assertEquals(fixed, result.path("sha256").asText());
    assertTrue(result.path("came").asInt() >= 1, result::toString);
    assertTrue(result.path("went").asInt() >= 1, result::toString);
  }

  private static CaffeModel fit(SparkSession spark, Path checkpoints) {
    return new CaffeEstimator()
        .setSolver(TestImages.solver(STEPS)).setNet(TestImages.lenet())
        .setFeaturesCol("image").setLabelCol("label").setEngine("rounds").setSyncMode("average")
        .setSyncPeriod(5).setShards(2).setCheckpointInterval(20)
        .setCheckpointDir(checkpoints.toUri().toString())
        .fit(TestImages.images(spark, ROWS));
  }

  /**
   * Trains two shards on three executors. The one with nothing to do leaves, and another job makes
   * Spark ask for more.
   */
  static final class Driver {
    private static final int EXECUTORS = 3;
    private static final int TASKS = 12;

    private Driver() {}

    public static void main(String[] args) throws Exception {
      Path dir = Path.of(args[0]);
      try (SparkSession spark = SparkSession.builder().appName("dynamic allocation")
          .master("local-cluster[3,1,512]").config("spark.executor.memory", "512m")
          .config("spark.dynamicAllocation.enabled", true)
          .config("spark.dynamicAllocation.shuffleTracking.enabled", true)
          .config("spark.dynamicAllocation.shuffleTracking.timeout", "1s")
          .config("spark.dynamicAllocation.minExecutors", 1)
          .config("spark.dynamicAllocation.maxExecutors", EXECUTORS)
          .config("spark.dynamicAllocation.initialExecutors", EXECUTORS)
          .config("spark.dynamicAllocation.executorIdleTimeout", "1s").getOrCreate()) {
        JavaSparkContext sc = JavaSparkContext.fromSparkContext(spark.sparkContext());
        keepBusyUntilAllAreThere(sc);
        Visits visits = new Visits();
        spark.sparkContext().addSparkListener(visits);
        CompletableFuture<Void> guests = CompletableFuture.runAsync(() -> {
          KillTest.awaitCheckpoint(dir.resolve("dynamic"));
          visits.awaitLeave();
          askForAll(sc);
        });
        CaffeModel model = fit(spark, dir.resolve("dynamic"));
        int came = visits.came.get();
        int went = visits.went.get();
        guests.get();
        Files.writeString(dir.resolve("answer"), Json.object()
            .put("sha256", Json.parse(model.result()).path("sha256").asText())
            .put("came", came).put("went", went).toString());
      }
    }
  }

  /** Without work the first executor would leave before the last has come. */
  private static void keepBusyUntilAllAreThere(JavaSparkContext sc) {
    do {
      askForAll(sc);
    } while (sc.sc().statusTracker().getExecutorInfos().length <= Driver.EXECUTORS); // with the driver
  }

  /** A job that is too long for one executor. */
  private static void askForAll(JavaSparkContext sc) {
    sc.parallelize(IntStream.range(0, Driver.TASKS).boxed().toList(), Driver.TASKS)
        .foreach(task -> Thread.sleep(500));
  }

  /** Counts the executors that come and go. */
  private static final class Visits extends SparkListener {
    private final AtomicInteger came = new AtomicInteger();
    private final AtomicInteger went = new AtomicInteger();
    private final CountDownLatch left = new CountDownLatch(1);

    @Override
    public void onExecutorAdded(SparkListenerExecutorAdded added) {
      came.incrementAndGet();
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
      went.incrementAndGet();
      left.countDown();
    }

    void awaitLeave() {
      try {
        left.await();
      } catch (InterruptedException e) {
        throw Unchecked.rethrow(e);
      }
    }
  }
}
