// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.cluster.ClusterSlots;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.scheduler.JobSucceeded$;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Survivors whose tasks are lost at the worst times: one for good, and all when the result is
 * stored and Spark has not been told of their ends. There is one executor more than members.
 */
@LongRun
@Timeout(value = 600, unit = TimeUnit.SECONDS)
class LostMemberTest {
  private static final int ROWS = 1_007;
  private static final int WORKERS = 2;
  private static final int STEPS = 300;
  private static final double ACCURACY = 0.9;

  @TempDir static Path dir;

  @BeforeAll
  static void train() throws Exception {
    Process driver = DriverProcess.start(Driver.class, dir.resolve("log"), dir.toString());
    assertEquals(0, driver.waitFor(), () -> DriverProcess.read(dir.resolve("log")));
  }

  @Test
  void theOthersEndWellWhenSparkGivesOneUp() {
    JsonNode result = result("given-up");
    String told = result + "\n" + DriverProcess.read(dir.resolve("log"));
    assertEquals(1, result.path("attempts").asInt(), told);
    assertEquals(WORKERS - 1, result.path("members_at_end").asInt(), told);
    assertEquals(STEPS, result.path("steps").asInt());
    assertEquals(ROWS, result.path("rows_given").asLong());
    JsonNode lost = result.path("partitions").path(WORKERS - 1);
    assertEquals(1, lost.path("losses").asInt(), told);
    assertTrue(lost.path("steps_away").asLong() > 0, told);
  }

  @Test
  void aStoredResultOutlivesTheTasksThatToldOfIt() {
    JsonNode result = result("after-the-last-word");
    assertEquals(0, result.path("deaths_left").asInt(), "the executors did not end in between");
    assertEquals(1, result.path("attempts").asInt());
    assertEquals(STEPS, result.path("steps").asInt());
    assertTrue(result.path("accuracy").asDouble() >= ACCURACY, result.toString());
    assertEquals("a socket to the driver", result.path("events_by").asText());
  }

  private static JsonNode result(String name) {
    return Json.parse(DriverProcess.read(dir.resolve(name)));
  }

  /** Trains twice, has it happen, writes what came of it. */
  static final class Driver {
    private Driver() {}

    public static void main(String[] args) throws Exception {
      Path dir = Path.of(args[0]);
      try (SparkSession spark = SparkSession.builder().appName("lost members")
          .master("local-cluster[" + (WORKERS + 1) + ",1,512]")
          .config("spark.executor.memory", "512m")
          .config("spark.plugins", DyingPlugin.class.getName())
          .config(DyingPlugin.FOLDER, dir.toString()).getOrCreate()) {
        Dataset<Row> table = TestImages.images(spark, ROWS);
        afterTheLastWord(spark, table, dir);
        givenUp(spark, table, dir);
      }
    }

    private static void afterTheLastWord(SparkSession spark, Dataset<Row> table, Path dir)
        throws Exception {
      for (int i = 0; i < WORKERS; i++) Files.createFile(dir.resolve(DyingPlugin.DIE + i));
      CaffeModel model = fit(spark, table, dir);
      long left = DyingPlugin.left(dir);
      for (int i = 0; i < WORKERS; i++) Files.deleteIfExists(dir.resolve(DyingPlugin.DIE + i));
      double right = model.transform(table).filter("prediction = label").count();
      ObjectNode answer = (ObjectNode) Json.parse(model.result());
      answer.put("deaths_left", left).put("accuracy", right / ROWS);
      Files.writeString(dir.resolve("after-the-last-word"), answer.toString());
    }

    /** The result is not stored before Spark has given the last member's job up. */
    private static void givenUp(SparkSession spark, Dataset<Row> table, Path dir) throws Exception {
      ClusterSlots.await(spark.sparkContext(), WORKERS + 1, 120, TimeUnit.SECONDS);
      Map<String, Long> executors = TestImages.executors(spark);
      AtomicReference<String> last = new AtomicReference<>();
      Files.createFile(dir.resolve(GateFiles.SHUT));
      SparkListener listener = new SparkListener() {
        @Override
        public void onTaskStart(SparkListenerTaskStart start) {
          if (start.taskInfo().partitionId() != WORKERS - 1) return;
          last.set(start.taskInfo().executorId());
        }

        @Override
        public void onJobEnd(SparkListenerJobEnd end) {
          if (end.jobResult() != JobSucceeded$.MODULE$) delete(dir.resolve(GateFiles.SHUT));
        }
      };
      spark.sparkContext().addSparkListener(listener);
      CompletableFuture<Void> killed = CompletableFuture.runAsync(() -> {
        KillTest.awaitCheckpoint(dir.resolve("checkpoints"));
        create(dir.resolve(GateFiles.REFUSE + (WORKERS - 1)));
        Processes.signal("KILL", executors.get(last.get()));
      });
      CaffeModel model = fit(spark, table, dir);
      killed.get();
      spark.sparkContext().removeSparkListener(listener);
      Files.writeString(dir.resolve("given-up"), model.result());
    }

    private static CaffeModel fit(SparkSession spark, Dataset<Row> table, Path dir) {
      return new CaffeEstimator()
          .setSolver(TestImages.solver(STEPS)).setNet(TestImages.lenet())
          .setFeaturesCol("image").setLabelCol("label").setNumWorkers(WORKERS)
          .setSyncMode("average").setSyncPeriod(5).setSurvivors(true)
          .setCheckpointDir(GateFiles.path(spark.sparkContext(), dir) + "/checkpoints")
          .setCheckpointInterval(20).fit(table);
    }

    private static void create(Path file) {
      try {
        Files.createFile(file);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    private static void delete(Path file) {
      try {
        Files.deleteIfExists(file);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}
