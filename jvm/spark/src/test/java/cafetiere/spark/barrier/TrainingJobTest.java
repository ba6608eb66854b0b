// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.barrier;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.CafetiereException;
import cafetiere.core.Trainer;
import cafetiere.spark.BothLines;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.CaffeModel;
import cafetiere.spark.TestImages;
import cafetiere.spark.TestNets;
import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.run.TaskSetup;
import cafetiere.spark.store.CheckpointStore;
import cafetiere.spark.store.SnapshotFiles;
import cafetiere.spark.util.TaskFolder;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.SerializableConfiguration;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A training on two executors from the first row to the model. */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
public class TrainingJobTest {
  private static final int ROWS = 2_003;
  private static SparkSession spark;

  @BeforeAll
  static void start() {
    spark = TestImages.session();
  }

  @BothLines
  @Test
  void usesEveryRowAndTellsWhatItDid() {
    CaffeModel model = estimator(60).fit(TestImages.images(spark, ROWS));
    JsonNode result = Json.parse(model.result());
    assertEquals(ROWS, result.path("rows_given").asLong());
    result.path("rows_per_epoch").forEach(used -> assertTrue(used.asLong() <= ROWS));
    assertEquals(2, result.path("executors").asInt());
    assertEquals(1, result.path("attempts").asInt());
    assertEquals("a socket to the driver", result.path("events_by").asText());
    assertTrue(result.path("seconds_to_first_step").asDouble() > 0);
    assertTrue(model.events().contains("\"progress\""));
    assertTrue(model.weights().length > 0 && model.solverState().length > 0);
  }

  /** Nobody waits for the others there, but at the end. */
  @BothLines
  @ParameterizedTest
  @CsvSource({"easgd,false,''", "easgd,true,adaptive_period: true", "downpour,true,n_push: 2 n_fetch: 3"})
  void asynchronousModesTellTheRowsOfAllRanks(String mode, boolean survivors, String options) {
    JsonNode result = Json.parse(estimator(60).setSyncMode(mode).setSyncOptions(options)
        .setSurvivors(survivors)
        .fit(TestImages.images(spark, ROWS)).result());
    assertEquals(ROWS, result.path("rows_given").asLong());
    JsonNode epochs = result.path("rows_per_epoch");
    assertEquals(result.path("epochs").asInt(), epochs.size());
    assertTrue(epochs.size() > 1, result.toString());
    assertEquals(ROWS, epochs.path(0).asLong());
  }

  /** Rank 0 tells of each time that it has doubled. */
  @Test
  void theAdaptivePeriodGrowsAsTheLossFalls() {
    String slow = TestImages.solver(100).replace("base_lr: 0.01", "base_lr: 0.003");
    CaffeModel model = estimator(100).setSolver(slow).setSyncMode("easgd").setSurvivors(true)
        .setSyncPeriod(2).setSyncOptions("adaptive_period: true")
        .fit(TestImages.images(spark, ROWS));
    List<int[]> told = Pattern.compile("adaptive period grown from (\\d+) to (\\d+)")
        .matcher(model.events()).results()
        .map(word -> new int[] {Integer.parseInt(word.group(1)), Integer.parseInt(word.group(2))})
        .toList();
    assertFalse(told.isEmpty(), model.events());
    int before = 2;
    for (int[] periods : told) {
      assertEquals(before, periods[0]);
      assertTrue(periods[1] >= 2 * periods[0], model.events());
      before = periods[1];
    }
    assertTrue(model.summary().loss() < 0.5, model.result());
  }

  @Test
  void oneRankGivesTheSameWeightsAsTwo() {
    Dataset<Row> table = TestImages.images(spark, 300);
    JsonNode two = Json.parse(estimator(20).setShards(2).fit(table).result());
    JsonNode one = Json.parse(estimator(20).setShards(2).setNumWorkers(1).fit(table).result());
    assertEquals(two.path("sha256"), one.path("sha256"));
  }

  /** Each needs all slots before its first step. */
  @Test
  void survivorsThatBeginTogetherDoNotTakeEachOthersSlots() throws Exception {
    Dataset<Row> table = TestImages.images(spark, 300);
    List<CompletableFuture<CaffeModel>> fits = Stream.generate(() -> CompletableFuture.supplyAsync(
        () -> estimator(5).setSyncMode("easgd").setSurvivors(true).fit(table))).limit(3).toList();
    for (CompletableFuture<CaffeModel> fit : fits) {
      assertEquals(5, fit.get().summary().steps());
    }
  }

  @BothLines
  @Test
  void validationRowsAreTestedOn() {
    String solver = TestImages.solver(40) + " test_interval: 20 test_iter: 1";
    CaffeModel model = estimator(40).setSolver(solver)
        .setValidationData(TestImages.images(spark, 101))
        .fit(TestImages.images(spark, ROWS));
    assertTrue(model.events().contains("\"test\""), model.events());
  }

  /** The checkpoint that the attempt began with is gone by then. */
  @Test
  void aMemberThatComesBackBeginsWithTheNewestCheckpoint(@TempDir Path dir) throws Exception {
    Dataset<Row> table = TestImages.images(spark, 300);
    CaffeEstimator estimator =
        estimator(4).setCheckpointDir(dir.toUri().toString()).setCheckpointInterval(1);
    estimator.fit(table);
    String folder;
    try (Stream<Path> runs = Files.list(dir)) {
      folder = runs.findFirst().orElseThrow().toUri().toString();
    }
    Configuration hadoop = spark.sparkContext().hadoopConfiguration();
    TrainingPlan plan = TestNets.plan(estimator, table);
    TaskSetup setup = new TaskSetup(plan, 0, "", "", folder, 0, CheckpointStore.name(1), "",
        new SnapshotFiles("", 0, false), false, 0, new SerializableConfiguration(hadoop), null);
    CheckpointStore store = setup.store();
    try (TaskFolder local = setup.folder();
        Trainer trainer = new Trainer(setup.trainerOptions(plan, 0, local), new Deaf())) {
      assertThrows(IOException.class, () -> setup.restore(trainer));
      setup.restoreNewest(trainer);
      assertArrayEquals(
          store.load(store.newest().orElseThrow()).model().bytes(), trainer.model());
    }
  }

  /** Where neither solver nor params have an interval; the last step's comes anyway. */
  @Test
  void checkpointsAreStoredByTime(@TempDir Path dir) throws Exception {
    spark.conf().set("spark.cafetiere.checkpointTime", "1s");
    String solver = TestImages.solver(5) + " iter_size: 100";  // steps of half a second or more
    try {
      estimator(5).setSolver(solver).setCheckpointDir(dir.toUri().toString())
          .fit(TestImages.images(spark, ROWS));
    } finally {
      spark.conf().unset("spark.cafetiere.checkpointTime");
    }
    try (Stream<Path> found = Files.find(dir, 3,
        (path, attributes) -> path.getFileName().toString().startsWith("step-"))) {
      assertEquals(CheckpointStore.KEPT, found.count());
    }
  }

  @BothLines
  @Test
  void aBadRowBehindTheSampleEndsTheRunAtOnceAndNamesTheRow() {
    Row bad = RowFactory.create(7L, new byte[TestImages.SIDE * TestImages.SIDE], 99);
    Dataset<Row> table = TestImages.images(spark, ROWS)
        .union(spark.createDataFrame(List.of(bad), TestImages.SCHEMA));
    long start = System.nanoTime();
    CafetiereException e =
        assertThrows(CafetiereException.class, () -> estimator(1000).fit(table));
    long seconds = TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - start);
    assertEquals(CafetiereException.Code.INVALID_ARGUMENT, e.code());
    assertTrue(e.getMessage().contains("label") && e.getMessage().contains("99"), e.getMessage());
    assertTrue(seconds < 20, "took " + seconds + " s");
  }

  @BothLines
  @Test
  void aRunThatIsCancelledEndsAndFreesItsSlots() throws Exception {
    CaffeEstimator endless = estimator(10).setMaxIter(1_000_000);
    Thread fit = new Thread(() -> assertThrows(Exception.class,
        () -> endless.fit(TestImages.images(spark, ROWS))));
    fit.start();
    for (int i = 0; i < 30 && fit.isAlive(); i++) {
      fit.join(3_000);
      spark.sparkContext().cancelAllJobs();
    }
    assertFalse(fit.isAlive(), "fit went on");
    assertEquals(2, TestImages.executorPids(spark).size());
  }

  /** Hears nothing. */
  private static final class Deaf implements Trainer.Listener {
    @Override
    public void event(String json) {}

    @Override
    public void checkpoint(String json, ByteBuffer model, ByteBuffer state) {}
  }

  public static CaffeEstimator estimator(int steps) {
    return new CaffeEstimator().setSolver(TestImages.solver(steps)).setNet(TestImages.lenet())
        .setFeaturesCol("image").setLabelCol("label").setIdCol("id")
        .setNumWorkers(TestImages.EXECUTORS);
  }
}
