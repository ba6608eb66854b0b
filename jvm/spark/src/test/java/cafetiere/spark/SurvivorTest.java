package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The others go on when an executor is killed, and its task joins them from another one. There are
 * three executors for two members, so that the task finds its new place at once.
 */
@Timeout(value = 900, unit = TimeUnit.SECONDS)
class SurvivorTest {
  private static final int ROWS = 1_007;
  private static final int WORKERS = 2;
  private static final int FEW_STEPS = 60;
  private static final double ACCURACY = 0.95;

  @TempDir static Path dir;

  /** One driver for both: a cluster takes as long to start as a fit to survive. */
  @BeforeAll
  static void train() throws Exception {
    Process driver = DriverProcess.start(
        Driver.class, dir.resolve("log"), dir.toString(), "average", "easgd");
    assertEquals(0, driver.waitFor(), () -> DriverProcess.read(dir.resolve("log")));
  }

  @ParameterizedTest
  @ValueSource(strings = {"average", "easgd"})
  void theOthersGoOnAndTakeTheReturningTaskIn(String mode) {
    JsonNode result = Json.parse(DriverProcess.read(dir.resolve(mode).resolve("answer")));
    String told = result + "\n" + DriverProcess.read(dir.resolve("log"));
    assertEquals(1, result.path("attempts").asInt(), "it began again from a checkpoint");
    assertEquals(WORKERS, result.path("members_at_end").asInt(), told);
    assertTrue(result.path("views").asInt() >= 3, told);
    assertEquals(ROWS, sum(result, "rows"));
    assertEquals(1, sum(result, "losses"));
    assertTrue(sum(result, "steps_away") > 0, told);
    assertTrue(result.path("accuracy").asDouble() >= ACCURACY, told);
  }

  /** The sum over all partitions. */
  private static long sum(JsonNode result, String field) {
    long sum = 0;
    for (JsonNode partition : result.path("partitions")) sum += partition.path(field).asLong();
    return sum;
  }

  /** For each mode: trains, kills the executor of a member in mid-run, writes what came of it. */
  static final class Driver {
    /** How long a run takes where nobody is lost: the task needs some seconds to be back. */
    private static final double SECONDS = 20;

    private Driver() {}

    public static void main(String[] args) throws Exception {
      try (SparkSession spark = SparkSession.builder().appName("survivors")
          .master("local-cluster[" + (WORKERS + 1) + ",1,512]")
          .config("spark.executor.memory", "512m").getOrCreate()) {
        Dataset<Row> table = TestImages.images(spark, ROWS);
        for (int i = 1; i < args.length; i++) {
          survive(spark, table, args[i], Path.of(args[0], args[i]));
        }
      }
    }

    private static void survive(SparkSession spark, Dataset<Row> table, String mode, Path dir)
        throws Exception {
      ClusterSlots.await(spark.sparkContext(), WORKERS + 1, 120, TimeUnit.SECONDS);
      JsonNode calm = Json.parse(fit(mode, table, FEW_STEPS, dir.resolve("calm")).result());
      assertEquals(1, calm.path("views").asInt());
      int steps = (int) (FEW_STEPS * SECONDS / calm.path("seconds").asDouble());

      Map<String, Long> executors = TestImages.executors(spark);
      AtomicReference<String> busy = new AtomicReference<>();
      SparkListener listener = new SparkListener() {
        @Override
        public void onTaskStart(SparkListenerTaskStart start) {
          busy.set(start.taskInfo().executorId());
        }
      };
      spark.sparkContext().addSparkListener(listener);
      Path checkpoints = dir.resolve("disturbed");
      CompletableFuture<Void> killed = CompletableFuture.runAsync(() -> {
        KillTest.awaitCheckpoint(checkpoints);
        ProcessHandle.of(executors.get(busy.get())).orElseThrow().destroyForcibly();
      });
      CaffeModel model = fit(mode, table, steps, checkpoints);
      killed.get();
      spark.sparkContext().removeSparkListener(listener);
      double right = model.transform(table).filter("prediction = label").count();
      ObjectNode answer = (ObjectNode) Json.parse(model.result());
      Files.writeString(dir.resolve("answer"), answer.put("accuracy", right / ROWS).toString());
    }

    private static CaffeModel fit(String mode, Dataset<Row> table, int steps, Path checkpoints) {
      return new CaffeEstimator()
          .setSolver(TestImages.solver(steps)).setNet(TestImages.lenet())
          .setFeaturesCol("image").setLabelCol("label")
          .setNumWorkers(WORKERS).setSyncMode(mode).setSyncPeriod(5).setSurvivors(true)
          .setCheckpointDir(checkpoints.toUri().toString()).setCheckpointInterval(20)
          .fit(table);
    }
  }
}
