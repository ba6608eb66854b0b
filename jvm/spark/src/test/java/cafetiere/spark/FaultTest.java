// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import cafetiere.spark.store.CheckpointStore;
import cafetiere.spark.util.Json;
import cafetiere.spark.util.Unchecked;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Faults at the worst times, in steps that take about a second and each leave a checkpoint: whatever
 * fails, the weights are those of an undisturbed run.
 */
@Timeout(value = 480, unit = TimeUnit.SECONDS)
class FaultTest {
  private static final int ROWS = 1_007;
  private static final int STEPS = 5;

  private static SparkSession spark;
  private static String undisturbed;

  @TempDir Path dir;

  @BeforeAll
  static void trainUndisturbed(@TempDir Path folder) {
    spark = TestImages.session();
    JsonNode result = fit(folder.resolve("run"));
    assertEquals(1, result.path("attempts").asInt());
    undisturbed = result.path("sha256").asText();
  }

  @BeforeEach
  void awaitExecutors() {
    TestImages.session();
  }

  @Test
  void killedInTheFirstStep() throws Exception {
    JsonNode result = disturbed("KILL", () -> hasTested(), () -> {
      assertFalse(exists(1), "the first step was over");
    });
    assertEquals(0, result.path("first_step").asLong());
  }

  @LongRun
  @Test
  void killedInTheLastStep() throws Exception {
    disturbed("KILL", () -> exists(STEPS - 1), () -> assertFalse(exists(STEPS), "it was over"));
  }

  @LongRun // a part of ./test, faults, has stopped ranks too
  @Test
  void stoppedInMidRun() throws Exception {
    disturbed("STOP", () -> exists(2), () -> assertFalse(exists(STEPS), "it was over"));
  }

  @LongRun
  @Test
  void aFullDiskEndsTheRunAndWhatWasStoredIsGoneOnFrom() throws Exception {
    JsonNode result = onAFullDisk("8m", estimator -> estimator);
    assertEquals(2, result.path("first_step").asLong());
    assertEquals(undisturbed, result.path("sha256").asText());
  }

  /** Whichever member is the first is the one that finds no room. */
  @Test
  void aFullDiskEndsTheRunOfSurvivors() throws Exception {
    JsonNode result = onAFullDisk("16m",
        estimator -> estimator.setSyncMode("average").setSyncPeriod(1).setSurvivors(true));
    assertEquals(2, result.path("first_step").asLong());
    assertEquals(STEPS, result.path("steps").asInt());
  }

  /**
   * Trains with checkpoints on a disk of the test's own, where two find room and a third does not;
   * then goes on with more room.
   */
  private JsonNode onAFullDisk(String size, UnaryOperator<CaffeEstimator> mode) throws Exception {
    Path disk = Files.createDirectory(dir.resolve("disk"));
    assumeTrue(
        Processes.run("mount", "-t", "tmpfs", "-o", "size=" + size, "tmpfs", disk.toString()) == 0,
        "no right to mount a small disk");
    try {
      CaffeEstimator estimator = mode.apply(estimator(disk)).setResume(true);
      String told = assertThrows(Exception.class, () -> estimator.fit(table())).getMessage();
      assertTrue(told.contains("after step 2") && told.contains(disk.toString()), told);
      assertTrue(told.contains("No space left on device"), told);
      assertTrue(told.contains("free space there or set checkpointDir"), told);

      assertEquals(0, Processes.run("mount", "-o", "remount,size=64m", disk.toString()));
      return Json.parse(estimator.fit(table()).result());
    } finally {
      Processes.run("umount", disk.toString());
    }
  }

  /** Sends a signal to an executor when it is {@code time}; then what {@code holds} is asked. */
  private JsonNode disturbed(String signal, BooleanSupplier time, Runnable holds) throws Exception {
    List<Long> executors = TestImages.executorPids(spark);
    long victim = executors.get(0);
    CompletableFuture<Void> disturbance = CompletableFuture.runAsync(() -> {
      await(time);
      Processes.signal(signal, victim);
      holds.run();
    });
    try {
      JsonNode result = fit(dir.resolve("run"));
      disturbance.get();
      assertEquals(undisturbed, result.path("sha256").asText());
      // One more where Spark looks for shuffled rows on the lost executor before it knows of the loss.
      int attempts = result.path("attempts").asInt();
      assertTrue(attempts == 2 || attempts == 3, attempts + " attempts");
      return result;
    } finally {
      ProcessHandle.of(victim).ifPresent(ProcessHandle::destroyForcibly);
    }
  }

  private static JsonNode fit(Path folder) {
    return Json.parse(estimator(folder).fit(table()).result());
  }

  private static Dataset<Row> table() {
    return TestImages.images(spark, ROWS);
  }

  private static CaffeEstimator estimator(Path folder) {
    return new CaffeEstimator()
        .setSolver(TestImages.solver(STEPS) + " iter_size: 20 test_interval: 100 test_iter: 1")
        .setNet(TestImages.lenet()).setFeaturesCol("image").setLabelCol("label")
        .setNumWorkers(TestImages.EXECUTORS)
        .setValidationData(TestImages.images(spark, 101))
        .setEvents(folder.resolveSibling("events").toString())
        .setCheckpointDir(folder.toUri().toString()).setCheckpointInterval(1);
  }

  /** Whether the test before the first step is over. */
  private boolean hasTested() {
    Path events = dir.resolve("events.jsonl");
    try {
      return Files.exists(events) && Files.readString(events).contains("\"test\"");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Whether the checkpoint of a step is there. */
  private boolean exists(int step) {
    try (Stream<Path> found = Files.find(dir, 3, (path, attributes) ->
        path.getFileName().toString().equals(CheckpointStore.name(step)))) {
      return found.findAny().isPresent();
    } catch (IOException | UncheckedIOException e) {
      return false;
    }
  }

  private static void await(BooleanSupplier time) {
    try {
      while (!time.getAsBoolean()) Thread.sleep(20);
    } catch (InterruptedException e) {
      throw Unchecked.rethrow(e);
    }
  }
}
