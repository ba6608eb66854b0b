// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.cluster.ClusterSlots;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Checkpoints and models that are files, as those are that an array cannot hold. */
@Timeout(value = 300, unit = TimeUnit.SECONDS)
class ModelFilesTest {
  private static final String LARGEST = "spark.cafetiere.largestModel";
  private static final String HDF5 = TestNets.SOLVER + "snapshot_format: HDF5\n";
  private static final int STEPS = 8;

  private static SparkSession spark;
  private static Dataset<Row> points;

  @TempDir Path dir;
  private List<Path> before;

  @BeforeAll
  static void table() {
    spark = TestImages.session();
    points = TestNets.points(spark, 203).cache();
  }

  @BeforeEach
  void seeWhatKilledDriversHaveLeft() {
    before = taskFolders();
  }

  @AfterEach
  void takeAwayTheLimit() {
    spark.conf().unset(LARGEST);
  }

  @Test
  void aFitGoesOnFromFilesWithTheBitsOfOneThatNeverStopped() {
    interrupt(estimator(HDF5));
    assertTrue(names("step-").stream().anyMatch(name -> name.endsWith("model.caffemodel.h5")));
    CaffeModel rest = estimator(HDF5).setCheckpointDir(dir.toUri().toString()).fit(points);
    assertTrue(rest.summary().firstStep() > 0);
    assertArrayEquals(estimator(TestNets.SOLVER).setResume(false)
        .setCheckpointDir(dir.resolve("other").toUri().toString()).fit(points).weights(),
        rest.weights());
    assertNoNewTaskFolder();
  }

  @Test
  void soDoesOneOfSurvivors() {
    interrupt(survivors(estimator(HDF5)));
    assertTrue(names("step-").stream().anyMatch(name -> name.endsWith("state.solverstate.h5")));
    CaffeModel rest =
        survivors(estimator(HDF5)).setCheckpointDir(dir.toUri().toString()).fit(points);
    assertTrue(rest.summary().firstStep() > 0);
    assertEquals(STEPS, rest.summary().steps());
    assertNoNewTaskFolder();
  }

  /** In steps that take so long that the kill comes between two of them. */
  @Test
  void aKilledExecutorIsMadeUpForFromFiles() throws Exception {
    Dataset<Row> images = TestImages.images(spark, 1_007);
    byte[] undisturbed = images("", "calm").fit(images).weights();
    ClusterSlots.await(spark.sparkContext(), TestImages.EXECUTORS, 60, TimeUnit.SECONDS);
    long victim = TestImages.executorPids(spark).get(0);
    CompletableFuture<Void> killed = CompletableFuture.runAsync(() -> {
      KillTest.awaitCheckpoint(dir.resolve("killed"));
      Processes.signal("KILL", victim);
    });
    CaffeModel model = images(" snapshot_format: HDF5", "killed").fit(images);
    killed.get();
    assertTrue(model.summary().attempts() > 1, "the training ended before the executor");
    assertArrayEquals(undisturbed, model.weights());
    TestImages.session();
    assertNoNewTaskFolder();
  }

  @BothLines
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aLargeModelIsAFileInTheCheckpointDir(boolean survivors) throws Exception {
    CaffeEstimator estimator = estimator(TestNets.SOLVER).setCheckpointDir(dir.toUri().toString());
    if (survivors) survivors(estimator);
    CaffeModel small = estimator.fit(points);
    spark.conf().set(LARGEST, "64");
    CaffeModel large = estimator.fit(points);
    assertEquals(1, names("model-").stream().filter(n -> n.endsWith(".caffemodel.h5")).count());
    assertEquals("", small.weightsFile());
    assertTrue(Path.of(URI.create(large.weightsFile())).startsWith(dir), large.weightsFile());
    assertTrue(Files.exists(Path.of(URI.create(large.solverStateFile()))));
    if (!survivors) assertEquals(scores(small), scores(large));
    String refusal = assertThrows(IllegalStateException.class, large::weights).getMessage();
    assertTrue(refusal.contains(large.weightsFile()), refusal);
    assertTrue(refusal.contains("raise " + LARGEST), refusal);
    assertNoNewTaskFolder();

    List<Row> scores = scores(large);
    large.write().save(dir.resolve("saved").toUri().toString());
    Files.move(dir.resolve("saved"), dir.resolve("moved"));
    Files.delete(Path.of(URI.create(large.weightsFile())));
    CaffeModel loaded = CaffeModel.load(dir.resolve("moved").toUri().toString());
    String overwritten = assertThrows(IllegalArgumentException.class,
        () -> loaded.write().overwrite().save(dir.resolve("moved").toString())).getMessage();
    assertTrue(overwritten.contains("still read from " + loaded.weightsFile()), overwritten);
    assertEquals(scores, scores(loaded));
    assertEquals(scores, scores(CaffeModel.ofWeightsFile(loaded.weightsFile(),
        Map.of("data", "features")).setNet(TestNets.CLASSIFIER)));
  }

  @Test
  void aFitBeginsWithLargeWeightsAndTheirState() {
    byte[] whole = estimator(TestNets.SOLVER)
        .setCheckpointDir(dir.resolve("whole").toUri().toString()).fit(points).weights();
    spark.conf().set(LARGEST, "64");
    CaffeModel half = estimator(TestNets.SOLVER).setMaxIter(STEPS / 2)
        .setCheckpointDir(dir.toUri().toString()).fit(points);
    CaffeEstimator rest = estimator(TestNets.SOLVER).setResume(false)
        .setWeights(half.weightsFile()).setSnapshot(half.solverStateFile())
        .setCheckpointDir(dir.resolve("rest").toUri().toString());
    CaffeEstimator rounds =
        rest.copy(rest.extractParamMap()).setEngine("rounds").setSyncMode("average");
    String refusal =
        assertThrows(PreflightException.class, () -> rounds.fit(points)).getMessage();
    assertTrue(refusal.contains("set engine to barrier, or raise " + LARGEST), refusal);
    CaffeModel end = rest.fit(points);
    assertEquals(STEPS, end.summary().steps());
    spark.conf().unset(LARGEST);
    CaffeModel bytes = rest.fit(points);
    assertArrayEquals(whole, bytes.weights());
    assertEquals(bytes.summary().sha256(), end.summary().sha256());
  }

  private static List<Row> scores(CaffeModel model) {
    return model.setOutputCols("score").transform(points).select("id", "score").orderBy("id")
        .collectAsList();
  }

  /** Ends a fit when it has stored a checkpoint. */
  private void interrupt(CaffeEstimator estimator) {
    LastTaskTest.cancelAsItStores(
        spark, dir, checkpoints -> estimator.setCheckpointDir(checkpoints).fit(points));
  }

  private static CaffeEstimator estimator(String solver) {
    return new CaffeEstimator().setSolver(solver).setNet(TestNets.CLASSIFIER).setIdCol("id")
        .setNumWorkers(1).setMaxIter(STEPS).setCheckpointInterval(2).setResume(true);
  }

  private static CaffeEstimator survivors(CaffeEstimator estimator) {
    return estimator.setNumWorkers(2).setSyncMode("average").setSyncPeriod(1).setSurvivors(true);
  }

  private CaffeEstimator images(String solver, String folder) {
    return new CaffeEstimator().setSolver(TestImages.solver(100) + solver)
        .setNet(TestImages.lenet()).setFeaturesCol("image").setLabelCol("label").setShards(4)
        .setNumWorkers(TestImages.EXECUTORS).setCheckpointInterval(20)
        .setCheckpointDir(dir.resolve(folder).toUri().toString());
  }

  /** Files below folders whose names begin so. */
  private List<String> names(String folder) {
    return LocalFiles.find(dir, 4, path -> path.getParent().getFileName().toString().startsWith(folder))
        .stream().map(Path::toString).toList();
  }

  /** Those of tasks that lie in Spark's local folders. */
  private void assertNoNewTaskFolder() {
    assertEquals(List.of(), taskFolders().stream().filter(f -> !before.contains(f)).toList());
  }

  private static List<Path> taskFolders() {
    return LocalFiles.find(Path.of(System.getProperty("spark.local.dir")), 4,
        path -> path.getFileName().toString().startsWith("cafetiere-")
            && Files.isDirectory(path) && !Files.exists(path.resolve("weights")));
  }
}
