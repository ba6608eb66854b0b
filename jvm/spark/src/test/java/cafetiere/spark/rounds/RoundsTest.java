// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.rounds;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.CafetiereException;
import cafetiere.spark.AfterJobs;
import cafetiere.spark.BothLines;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.KillTest;
import cafetiere.spark.Logged;
import cafetiere.spark.StoreFiles;
import cafetiere.spark.TestImages;
import cafetiere.spark.TestNets;
import cafetiere.spark.TrainingSummary;
import cafetiere.spark.barrier.BarrierEngine;
import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.run.Run;
import cafetiere.spark.run.TrainingResult;
import cafetiere.spark.util.Json;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.management.ObjectName;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.storage.StorageLevel;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Trainings in rounds of ordinary jobs: the bits of the barrier engine, whatever happens. */
@Timeout(value = 480, unit = TimeUnit.SECONDS)
class RoundsTest {
  private static final int ROWS = 1_007;
  private static final int KILL_AFTER_JOBS = 8;

  private static SparkSession spark;

  @BeforeAll
  static void start() {
    spark = TestImages.session();
  }

  @AfterEach
  void recover() {
    StoreFiles.recover();
  }

  @BothLines
  @Test
  void theDriverGetsSumsOfGroupsOrEachHistory() {
    assertEquals(8, RoundsStage.outcomes(8, false), "each shard");
    assertEquals(7, RoundsStage.outcomes(100, false), "groups of 16 shards");
    assertEquals(100, RoundsStage.outcomes(100, true), "a history from each");
  }

  @Test
  void theWeightsAreThoseOfTheBarrierEngine() {
    Dataset<Row> table = TestImages.images(spark, ROWS);
    for (String sync : List.of("mode: 'average'", "mode: 'average' history: 'averaged'",
        "mode: 'average' history: 'reset'", "mode: 'diloco' outer_momentum: 0.5")) {
      TrainingPlan plan = plan(table, sync, 23, 2);
      TrainingSummary rounds =
          Run.of(new RoundsEngine(), plan, table.repartition(3), null).summary();
      assertEquals(sha256(Run.of(new BarrierEngine(), plan, table, null)), rounds.sha256(), sync);
      assertEquals(5, rounds.rounds());
      assertEquals(ROWS, rounds.rowsGiven());
      assertEquals(ROWS, rounds.rowsPerEpoch().get(0));
    }
  }

  @Test
  void alsoWithSumsOfGroupsOfShards() {
    Dataset<Row> table = TestImages.images(spark, ROWS);
    TrainingPlan plan = plan(table, "mode: 'average'", 15, 11);
    assertEquals(sha256(Run.of(new BarrierEngine(), plan, table, null)),
        sha256(Run.of(new RoundsEngine(), plan, table, null)));
  }

  @Test
  void anExecutorThatIsKilledCostsNoBit() throws Exception {
    Dataset<Row> table = TestImages.images(spark, ROWS);
    TrainingPlan plan = plan(table, "mode: 'average'", 90, 2);
    String undisturbed = sha256(Run.of(new RoundsEngine(), plan, table, null));
    long victim = TestImages.executorPids(spark).get(0);
    try (AfterJobs kill = new AfterJobs(spark.sparkContext(), KILL_AFTER_JOBS,
        () -> ProcessHandle.of(victim).orElseThrow().destroyForcibly())) {
      TrainingSummary result = Run.of(new RoundsEngine(), plan, table, null).summary();
      assertTrue(kill.done(), "the training ended before the executor");
      assertEquals(undisturbed, result.sha256());
      assertEquals(18, result.rounds());
      result.rowsPerEpoch().forEach(used -> assertTrue(used <= ROWS));
    }
    TestImages.session();
  }

  @Test
  void aRunLeavesNoReplicasBehind() throws Exception {
    Dataset<Row> table = TestImages.images(spark, ROWS);
    for (int i = 0; i < 2; i++) {
      Run.of(new RoundsEngine(), plan(table, "mode: 'average'", 10, 3), table, null);
    }
    List<Integer> tasks = IntStream.range(0, 4 * TestImages.EXECUTORS).boxed().toList();
    int left = JavaSparkContext.fromSparkContext(spark.sparkContext())
        .parallelize(tasks, tasks.size()).map(task -> liveNetsHere()).reduce(Integer::sum);
    assertEquals(0, left);
  }

  @Test
  void anInterruptedRunIsTakenUpWithTheSameBits(@TempDir Path dir) throws Exception {
    Dataset<Row> table = TestImages.images(spark, ROWS);
    CaffeEstimator estimator = estimator(TestImages.solver(100), "mode: 'average'", 2)
        .setEngine("rounds").setCheckpointInterval(20);
    String undisturbed = sha256(estimator.fit(table).result());

    estimator.setResume(true).setCheckpointDir(dir.toUri().toString());
    Thread interrupted =
        new Thread(() -> assertThrows(Exception.class, () -> estimator.fit(table)));
    interrupted.start();
    KillTest.awaitCheckpoint(dir);
    while (interrupted.isAlive()) {
      spark.sparkContext().cancelAllJobs();
      interrupted.join(20);
    }
    String resumed = estimator.fit(table).result();
    assertTrue(Json.parse(resumed).path("first_step").asLong() >= 40, resumed);
    assertEquals(undisturbed, sha256(resumed));
  }

  /** Where neither solver nor params have an interval. */
  @Test
  void checkpointsAreStoredByTime(@TempDir Path dir) throws Exception {
    Dataset<Row> table = TestImages.images(spark, ROWS);
    assertEquals(List.of(20L), storedSteps(table, dir.resolve("late")), "before ten minutes");
    spark.conf().set("spark.cafetiere.checkpointTime", "0s");
    try {
      assertEquals(List.of(15L, 20L), storedSteps(table, dir.resolve("soon")));
    } finally {
      spark.conf().unset("spark.cafetiere.checkpointTime");
    }
  }

  @Test
  void aPeriodicCheckpointThatFailsIsTriedAgain(@TempDir Path dir) throws Exception {
    String calm = fitOnStore(dir.resolve("calm"), 20, 5).sha256();
    refuseWrites(2);
    try (Logged logged = new Logged(Run.class)) {
      assertEquals(calm, fitOnStore(dir.resolve("busy"), 20, 5).sha256());
      assertEquals(2, count(logged,
          "WARN The training goes on, and stores a checkpoint after the next round: could not write"));
    }
    assertEquals(List.of(15L, 20L), storedSteps(dir.resolve("busy")));
  }

  @Test
  void aRunOfWhichNothingCanBeStoredEnds(@TempDir Path dir) {
    refuseWrites(Integer.MAX_VALUE);
    String message =
        assertThrows(UncheckedIOException.class, () -> fitOnStore(dir, 1_000, 1)).getMessage();
    assertTrue(message.contains(
        "of the last 64 rounds none could be stored: could not write the checkpoint of step "), message);
  }

  /** With resume it would be removed anyway. */
  @Test
  void theLastCheckpointIsNotWorthTheModel(@TempDir Path dir) throws Exception {
    String calm = fitOnStore(dir.resolve("calm"), 20, 5).sha256();
    refuseWrites(Integer.MAX_VALUE);
    CaffeEstimator estimator = onStore(dir.resolve("busy"), 20, 5).setCheckpointInterval(0).setResume(true);
    try (Logged logged = new Logged(Run.class)) {
      assertEquals(calm, estimator.fit(TestNets.points(spark, 103)).summary().sha256());
      assertEquals(1, count(logged, "WARN The training has ended well without its last checkpoint"));
    }
  }

  @Test
  void aLastCheckpointThatIsToStayIsTriedTwice(@TempDir Path dir) throws Exception {
    refuseWrites(1);
    assertEquals(20, fitOnStore(dir, 20, 20).steps());
    assertEquals(List.of(20L), storedSteps(dir));
    refuseWrites(2);
    String message =
        assertThrows(UncheckedIOException.class, () -> fitOnStore(dir, 20, 20)).getMessage();
    assertTrue(message.contains("could not write the checkpoint of step 20 to "), message);
  }

  /** Its rows cannot be read where they are not stored yet. */
  @Test
  void replicasThatCannotBeVisitedEndNoRun() {
    JavaSparkContext sc = JavaSparkContext.fromSparkContext(spark.sparkContext());
    JavaRDD<byte[]> rows = sc.parallelize(List.of(1, 2), 2).map(row -> {
      if (row == 2) throw new IllegalStateException("the test refuses the row");
      return new byte[1];
    });
    RoundsCell.Setup setup =
        new RoundsCell.Setup("{}", null, 1, false, "", "", null, null, 0);
    RoundsStage stage = new RoundsStage(sc, setup, null, 2, rows, null);
    for (Runnable end : List.<Runnable>of(stage::spread, stage::close)) {
      rows.collectPartitions(new int[] {0});
      try (Logged logged = new Logged(RoundsStage.class)) {
        end.run();
        assertEquals(1, count(logged, "WARN Replicas are freed only as their broadcast is dropped"));
      }
    }
    assertEquals(StorageLevel.NONE(), rows.getStorageLevel());
  }

  @Test
  void validationRowsAreTestedOnAtEndsOfRounds(@TempDir Path dir) throws Exception {
    Dataset<Row> table = TestImages.images(spark, ROWS);
    String solver = TestImages.solver(20) + " test_interval: 8 test_iter: 1";
    TrainingPlan plan = TestNets.plan(estimator(solver, "mode: 'average'", 2)
        .setEvents(dir.resolve("run").toString()), table);
    String events = Run.of(new RoundsEngine(), plan, table, TestImages.images(spark, 101)).events();
    assertEquals(List.of(0L, 10L, 20L), steps(events, "test"));
    assertTrue(events.lastIndexOf("\"progress\"") > events.lastIndexOf("\"test\""), events);
    String file = Files.readString(dir.resolve("run.jsonl"));
    assertEquals(events.lines().count(), file.lines().count());
    assertTrue(file.contains("\"test\"") && file.contains("\"progress\""), file);
  }

  /** However fast the rounds are. */
  @Test
  void progressIsToldOfEachRoundWithADisplayedIteration() {
    Dataset<Row> table = TestImages.images(spark, ROWS);
    String solver = TestImages.solver(23).replaceAll("display: \\d+", "") + " display: 7";
    TrainingPlan plan = TestNets.plan(estimator(solver, "mode: 'average'", 2), table);
    String events = Run.of(new RoundsEngine(), plan, table, null).events();
    assertEquals(List.of(5L, 10L, 15L, 23L), steps(events, "progress"));
  }

  @BothLines
  @Test
  void theEstimatorTakesTheEngineByItsName() {
    Dataset<Row> table = TestImages.images(spark, ROWS);
    CaffeEstimator rounds = estimator(TestImages.solver(10), "mode: 'average'", 2)
        .setEngine("rounds");
    assertEquals("rounds", rounds.fit(table).summary().engine());
    assertTrue(assertThrows(IllegalArgumentException.class, () -> rounds.setEngine("cups"))
        .getMessage().contains("rounds"));
  }

  @Test
  void aBadRowEndsTheRunAndIsNamed() {
    Row bad = RowFactory.create(7L, new byte[TestImages.SIDE * TestImages.SIDE], 99);
    Dataset<Row> table = TestImages.images(spark, ROWS)
        .union(spark.createDataFrame(List.of(bad), TestImages.SCHEMA));
    TrainingPlan plan = plan(table, "mode: 'average'", 1000, 2);
    CafetiereException e =
        assertThrows(CafetiereException.class, () -> Run.of(new RoundsEngine(), plan, table, null));
    assertEquals(CafetiereException.Code.INVALID_ARGUMENT, e.code());
    assertTrue(e.getMessage().contains("label") && e.getMessage().contains("99"), e.getMessage());
  }

  /** The steps of the checkpoints that a fit leaves. */
  private static List<Long> storedSteps(Dataset<Row> table, Path dir) throws IOException {
    estimator(TestImages.solver(20), "mode: 'average'", 2)
        .setEngine("rounds").setCheckpointDir(dir.toUri().toString()).fit(table);
    return storedSteps(dir);
  }

  private static List<Long> storedSteps(Path dir) throws IOException {
    try (Stream<Path> found = Files.find(dir, 3,
        (path, attributes) -> path.getFileName().toString().startsWith("step-"))) {
      return found.map(path -> Long.parseLong(path.getFileName().toString().substring(5)))
          .sorted().toList();
    }
  }

  private static TrainingSummary fitOnStore(Path dir, int steps, int every) {
    return onStore(dir, steps, every).fit(TestNets.points(spark, 103)).summary();
  }

  /** A small training in rounds of so many steps, each followed by a checkpoint in an object store. */
  private static CaffeEstimator onStore(Path dir, int steps, int every) {
    StoreFiles.configure(spark.sparkContext(), dir.resolve("fault"));
    return new CaffeEstimator().setSolver(TestNets.SOLVER + " sync { period: " + every + " mode: 'average' }")
        .setNet(TestNets.CLASSIFIER).setIdCol("id").setEngine("rounds").setMaxIter(steps).setNumWorkers(2)
        .setShards(2).setCheckpointInterval(every).setCheckpointDir(StoreFiles.path(dir));
  }

  /** The next writes of checkpoints fail. */
  private static void refuseWrites(int number) {
    AtomicInteger left = new AtomicInteger(number);
    StoreFiles.refuse(request -> request.startsWith("create ") && request.contains("/_writing-")
        && left.getAndDecrement() > 0);
  }

  private static long count(Logged logged, String begin) {
    return logged.text().lines().filter(line -> line.startsWith(begin)).count();
  }

  private static TrainingPlan plan(Dataset<Row> table, String sync, int steps, int shards) {
    return TestNets.plan(estimator(TestImages.solver(steps), sync, shards), table);
  }

  private static CaffeEstimator estimator(String solver, String sync, int shards) {
    return new CaffeEstimator()
        .setSolver(solver + " sync { period: 5 " + sync + " }").setNet(TestImages.lenet())
        .setFeaturesCol("image").setLabelCol("label")
        .setNumWorkers(TestImages.EXECUTORS).setShards(shards);
  }

  private static String sha256(TrainingResult result) {
    return result.summary().sha256();
  }

  private static String sha256(String result) {
    return Json.parse(result).path("sha256").asText();
  }

  /** The steps of the events of one kind, in order. */
  private static List<Long> steps(String events, String kind) {
    return events.lines().map(Json::parse)
        .filter(event -> event.path("event").asText().equals(kind))
        .map(event -> event.path("step").asLong()).toList();
  }

  /** Replicas that this JVM's garbage collector could not free. */
  private static int liveNetsHere() throws Exception {
    String histogram = (String) ManagementFactory.getPlatformMBeanServer().invoke(
        new ObjectName("com.sun.management:type=DiagnosticCommand"), "gcClassHistogram",
        new Object[] {new String[0]}, new String[] {String[].class.getName()});
    return histogram.lines().filter(line -> line.contains("cafetiere.core.Rounds$Replica "))
        .mapToInt(line -> Integer.parseInt(line.trim().split("\\s+")[1])).sum();
  }
}
