// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.cluster.ClusterSlots;
import cafetiere.spark.util.Json;
import cafetiere.spark.util.Unchecked;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * The others go on when an executor is killed or stopped, and its task joins them from another one,
 * or from there when the executor goes on. There are three executors for two members, so that the
 * task finds its new place at once. Spark itself would wait an hour for one that is stopped.
 */
@LongRun
@Timeout(value = 900, unit = TimeUnit.SECONDS)
class SurvivorTest {
  private static final int ROWS = 1_007;
  private static final int WORKERS = 2;
  private static final int CALM_STEPS = 200;  // so many that the first ones do not hide the rate
  private static final int CHECKPOINT_EVERY = 20;
  private static final int FEWEST_STEPS = 5 * CHECKPOINT_EVERY;  // on a machine that is busy
  private static final int PEER_TIMEOUT_MILLIS = 3_000;
  private static final double ACCURACY = 0.95;

  /** What happens to an executor; an undisturbed run takes so long that it can return. */
  enum Fault {
    KILLED(6), STOPPED(55), CONTINUED(10);

    private final double seconds;

    Fault(double seconds) {
      this.seconds = seconds;
    }
  }

  @TempDir Path dir;

  /** One driver for all: a cluster takes as long to start as a fit to survive. */
  @Test
  void theOthersGoOnAndTakeTheReturningTaskIn() throws Exception {
    survive("average,KILLED", "easgd,KILLED", "easgd,CONTINUED");
  }

  /** Whether its task is back before the end is left to the machine. */
  @Test
  void downpourEndsWellWithoutOneThatIsKilled() throws Exception {
    run("downpour,KILLED");
    String told = DriverProcess.read(dir.resolve("log"));
    JsonNode result = Json.parse(DriverProcess.read(dir.resolve("downpour/KILLED/answer")));
    assertEquals(1, result.path("attempts").asInt(), "it began again from a checkpoint");
    assertTrue(result.path("views").asInt() >= 2, told);
    assertEquals(1, sum(result, "losses"), told);
    assertEquals(ROWS, result.path("rows_given").asLong());
    assertTrue(result.path("accuracy").asDouble() >= ACCURACY, told);
  }

  /** Spark's heartbeats have to stop before it is replaced. */
  @Test
  void oneThatIsStoppedIsReplaced() throws Exception {
    survive("average,STOPPED");
  }

  private void survive(String... cases) throws Exception {
    run(cases);
    for (String name : cases) {
      String mode = name.split(",")[0];
      Path answer = dir.resolve(mode).resolve(name.split(",")[1]).resolve("answer");
      check(mode, Json.parse(DriverProcess.read(answer)));
    }
  }

  private void run(String... cases) throws Exception {
    String[] args = Stream.concat(Stream.of(dir.toString()), Stream.of(cases)).toArray(String[]::new);
    Process driver = DriverProcess.start(Driver.class, dir.resolve("log"), args);
    assertEquals(0, driver.waitFor(), () -> DriverProcess.read(dir.resolve("log")));
  }

  private void check(String mode, JsonNode result) {
    String told = result + "\n" + DriverProcess.read(dir.resolve("log"));
    assertEquals(1, result.path("attempts").asInt(), "it began again from a checkpoint");
    assertEquals(WORKERS, result.path("members_at_end").asInt(), told);
    assertTrue(result.path("views").asInt() >= 3, told);
    assertEquals(ROWS, sum(result, "rows"));
    assertEquals(ROWS, result.path("rows_given").asLong());
    // In easgd a member may be lost that was ahead, and repeat what it did when it is back.
    long most = mode.equals("average") ? ROWS : 2 * ROWS;
    result.path("rows_per_epoch").forEach(used -> assertTrue(used.asLong() <= most, told));
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

  /** Trains for each mode and fault, has it happen in mid-run, writes what came of it. */
  static final class Driver {
    private Driver() {}

    public static void main(String[] args) throws Exception {
      try (SparkSession spark = SparkSession.builder().appName("survivors")
          .master("local-cluster[" + (WORKERS + 1) + ",1,512]")
          .config("spark.executor.memory", "512m")
          // So long that one that goes on has not been replaced before.
          .config("spark.executor.heartbeatInterval", "10s").getOrCreate()) {
        Dataset<Row> table = TestImages.images(spark, ROWS);
        Path dir = Path.of(args[0]);
        Map<String, Double> rates = new HashMap<>();
        for (String[] words : Stream.of(args).skip(1).map(arg -> arg.split(",")).toList()) {
          String mode = words[0];
          Fault fault = Fault.valueOf(words[1]);
          if (!rates.containsKey(mode)) rates.put(mode, stepsPerSecond(mode, table, dir));
          int steps = Math.max(FEWEST_STEPS, (int) (rates.get(mode) * fault.seconds));
          survive(spark, table, mode, steps, fault, dir.resolve(mode).resolve(fault.name()));
        }
      }
    }

    private static double stepsPerSecond(String mode, Dataset<Row> table, Path dir) {
      JsonNode calm =
          Json.parse(fit(mode, table, CALM_STEPS, dir.resolve(mode).resolve("calm")).result());
      assertEquals(1, calm.path("views").asInt());
      JsonNode epochs = calm.path("rows_per_epoch");  // the last one may not be over
      for (int i = 0; i + 1 < epochs.size(); i++) assertEquals(ROWS, epochs.path(i).asLong());
      return CALM_STEPS / calm.path("seconds").asDouble();
    }

    private static void survive(SparkSession spark, Dataset<Row> table, String mode, int steps,
        Fault fault, Path dir) throws Exception {
      ClusterSlots.await(spark.sparkContext(), WORKERS + 1, 120, TimeUnit.SECONDS);
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
      CompletableFuture<Void> happened = CompletableFuture.runAsync(() -> {
        KillTest.awaitCheckpoint(checkpoints);
        disturb(fault, executors.get(busy.get()), checkpoints);
      });
      CaffeModel model = fit(mode, table, steps, checkpoints);
      happened.get();
      spark.sparkContext().removeSparkListener(listener);
      double right = model.transform(table).filter("prediction = label").count();
      ObjectNode answer = (ObjectNode) Json.parse(model.result());
      Files.writeString(dir.resolve("answer"), answer.put("accuracy", right / ROWS).toString());
    }

    /** An executor that goes on does so when the others have gone on for a while. */
    private static void disturb(Fault fault, long victim, Path checkpoints) {
      if (fault == Fault.KILLED) {
        Processes.signal("KILL", victim);
        return;
      }
      long before = newestStep(checkpoints);
      Processes.signal("STOP", victim);
      if (fault == Fault.STOPPED) return;
      try {
        while (newestStep(checkpoints) < before + 2 * CHECKPOINT_EVERY) Thread.sleep(50);
      } catch (InterruptedException e) {
        throw Unchecked.rethrow(e);
      }
      Processes.signal("CONT", victim);
    }

    /** Of the checkpoints in a folder of a run; 0 where there is none. */
    private static long newestStep(Path dir) {
      try (Stream<Path> paths = Files.find(dir, 3,
          (path, attributes) -> path.getFileName().toString().matches("step-\\d+"))) {
        return paths.mapToLong(path -> Long.parseLong(path.getFileName().toString().substring(5)))
            .max().orElse(0);
      } catch (IOException | UncheckedIOException e) {
        return 0;
      }
    }

    private static CaffeModel fit(String mode, Dataset<Row> table, int steps, Path checkpoints) {
      CaffeEstimator estimator = new CaffeEstimator()
          .setSolver(TestImages.solver(steps)).setNet(TestImages.lenet())
          .setFeaturesCol("image").setLabelCol("label")
          .setNumWorkers(WORKERS).setPeerTimeout(PEER_TIMEOUT_MILLIS)
          .setSyncMode(mode).setSyncPeriod(5).setSurvivors(true)
          .setCheckpointDir(checkpoints.toUri().toString())
          .setCheckpointInterval(CHECKPOINT_EVERY);
      // Its late updates add to the momentum: with the solver's 0.9 it diverges now and then (docs/modes.md).
      if (mode.equals("downpour")) estimator.setMomentum(0.5);
      return estimator.fit(table);
    }
  }
}
