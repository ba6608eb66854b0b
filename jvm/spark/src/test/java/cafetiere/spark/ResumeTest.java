// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.barrier.TrainingJobTest;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.feed.RowsHash;
import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.run.Run;
import cafetiere.spark.store.CheckpointFolder;
import cafetiere.spark.util.Json;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What a fit with {@code resume} goes on from: its own rows' checkpoints, as those of folds. */
@Timeout(value = 240, unit = TimeUnit.SECONDS)
class ResumeTest {
  private static SparkSession spark;
  private static Dataset<Row> points;

  @TempDir Path dir;

  @BeforeAll
  static void table() {
    spark = TestImages.session();
    points = TestNets.points(spark, 203).cache();
  }

  @BothLines
  @Test
  void otherRowsStartAnewAndTheirsAreKeptForThem() {
    interrupt(fold(0));
    CaffeModel other = fit(fold(1), dir.toUri().toString());
    assertEquals(0, Json.parse(other.result()).path("first_step").asLong());
    assertArrayEquals(
        fit(fold(1), dir.resolve("elsewhere").toUri().toString()).weights(), other.weights());
    CaffeModel same = fit(fold(0), dir.toUri().toString());
    assertNotEquals(0, Json.parse(same.result()).path("first_step").asLong());
  }

  /** The best test so far is one of other rows; where it stops nothing, it does not matter. */
  @Test
  void withEarlyStoppingOtherValidationRowsStartAnew() {
    Dataset<Row> rows = fold(0);
    Dataset<Row> tested = fold(1);
    Dataset<Row> others = tested.filter("id > 20");
    SparkContext sc = spark.sparkContext();
    for (String stopping : List.of("", " early_stopping { }")) {
      TrainingPlan plan = estimator(dir.toUri().toString())
          .setSolver(TestNets.SOLVER + " test_interval: 2 test_iter: 1" + stopping).plan(rows);
      String folder = CheckpointFolder.ofRun(sc, plan, rows, tested, "1");
      assertEquals(folder, CheckpointFolder.ofRun(sc, plan, rows, tested.repartition(3), "2"));
      assertEquals(stopping.isEmpty(), folder.equals(CheckpointFolder.ofRun(sc, plan, rows, others, "3")));
      assertEquals(stopping.isEmpty(), folder.equals(CheckpointFolder.ofRun(sc, plan, rows, null, "4")));
    }
  }

  @Test
  void aFitThatFindsOnlyCheckpointsOfOthersNamesThem() throws Exception {
    Path other = Files.createDirectory(dir.resolve("run-0123"));
    try (Logged logged = new Logged(Run.class)) {
      CaffeModel model = fit(fold(0), dir.toUri().toString());
      assertEquals(0, Json.parse(model.result()).path("first_step").asLong());
      assertTrue(logged.text().contains("WARN resume found no checkpoint of these rows and settings in "
          + dir.toUri() + ", so the training begins anew. run-0123 there are"), logged.text());
    }
    Files.delete(other);
    try (Logged logged = new Logged(Run.class)) {
      fit(fold(0), dir.toUri().toString());
      assertFalse(logged.text().contains("resume found"), logged.text());
    }
  }

  @Test
  void aFitWhoseCheckpointsAreAllDamagedSaysSo() throws Exception {
    interrupt(fold(0));
    for (Path manifest : LocalFiles.find(dir, 4, path -> path.endsWith("manifest.json"))) {
      Files.writeString(manifest, "{");
    }
    try (Logged logged = new Logged(Run.class)) {
      CaffeModel model = fit(fold(0), dir.toUri().toString());
      assertEquals(0, Json.parse(model.result()).path("first_step").asLong());
      assertTrue(logged.text().contains("WARN None of the checkpoints in "), logged.text());
    }
  }

  @BothLines
  @Test
  void theHashOfRowsIsThatOfTheRowsAndNotOfTheirOrder() {
    FeedSchema images = TrainingJobTest.estimator(1).plan(TestImages.images(spark, 7)).schema();
    Dataset<Row> table = TestImages.images(spark, 20);
    String hash = RowsHash.of(images, table);
    assertEquals(hash, RowsHash.of(images, table.repartition(3).orderBy(functions.desc("id"))));
    assertNotEquals(hash, RowsHash.of(images, table.filter("id <> 3")));
    assertNotEquals(hash, RowsHash.of(images, table.filter("id <> 3").union(
        table.filter("id = 4"))), "a row twice in another's place");
    assertNotEquals(hash, RowsHash.of(images, table.union(table)));
    assertNotEquals(hash, RowsHash.of(images, table.withColumn("label", functions.lit(1))));
  }

  /** And not at the end of the task: a member that comes back late would find a disk full of them. */
  @Test
  void theCopyOfACheckpointGoesWhenItIsRead() throws Exception {
    interrupt(fold(0));
    Path shut = Files.createFile(dir.resolve(GateFiles.SHUT));
    String checkpoints = GateFiles.path(spark.sparkContext(), dir);
    var trained = CompletableFuture.supplyAsync(() -> fit(fold(0), checkpoints));
    while (LocalFiles.find(dir, 6, path -> path.getParent().endsWith("result")).isEmpty()) {
      assertFalse(trained.isDone(), "it was not held up");
      Thread.sleep(20);
    }
    Path local = Path.of(System.getProperty("spark.local.dir"));
    List<Path> copies =
        LocalFiles.find(local, 6, path -> path.getFileName().toString().startsWith("stored-"));
    Files.delete(shut);
    assertNotEquals(0, Json.parse(trained.join().result()).path("first_step").asLong());
    assertEquals(List.of(), copies);
  }

  private static Dataset<Row> fold(int number) {
    return points.filter("id % 2 = " + number);
  }

  /** Ends a fit when it has stored a checkpoint. */
  private void interrupt(Dataset<Row> rows) {
    LastTaskTest.cancelAsItStores(spark, dir, checkpoints -> fit(rows, checkpoints));
  }

  private static CaffeModel fit(Dataset<Row> rows, String checkpoints) {
    return estimator(checkpoints).fit(rows);
  }

  private static CaffeEstimator estimator(String checkpoints) {
    return new CaffeEstimator().setSolver(TestNets.SOLVER).setNet(TestNets.CLASSIFIER)
        .setIdCol("id").setNumWorkers(1).setMaxIter(8)
        .setCheckpointDir(checkpoints).setCheckpointInterval(2).setResume(true);
  }
}
