// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.preflight;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.BothLines;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.PreflightException;
import cafetiere.spark.TestImages;
import cafetiere.spark.TestNets;
import cafetiere.spark.cluster.PortRange;
import cafetiere.spark.feed.RowRoom;
import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.plan.TrainingPlan;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Each refusal says what to change; see also {@link PreflightFaultsTest}. */
@BothLines
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class PreflightTest {
  private static SparkSession spark;
  private static Dataset<Row> table;

  @TempDir Path dir;

  @BeforeAll
  static void start() {
    spark = TestImages.session();
    table = TestImages.images(spark, 200);
  }

  @Test
  void aGoodPlanPasses() {
    assertDoesNotThrow(() -> Preflight.check(spark, plan(estimator(), table), table));
  }

  @Test
  void tooFewSlots() {
    assertFinding("the training needs 5 tasks at once (numWorkers) and the cluster can run 2"
        + " (spark.task.cpus=1): add --master 'local-cluster[5,1,2048]' or set numWorkers to 2",
        refusal(estimator().setNumWorkers(5), table));
  }

  @Test
  void dynamicAllocation() {
    SparkConf conf = conf().set("spark.dynamicAllocation.enabled", "true");
    assertFinding("dynamic allocation is on, and Spark runs no barrier stage under it: add --conf"
        + " spark.dynamicAllocation.enabled=false --conf spark.executor.instances=2",
        refusal(conf, estimator(), table));
  }

  /** Survivors wait for their executors before Spark has a job to ask for them. */
  @Test
  void survivorsUnderDynamicAllocation() {
    SparkConf conf = conf().set("spark.dynamicAllocation.enabled", "true");
    assertFinding("dynamic allocation is on, and the executors of survivors have to be there before"
        + " their first job: add --conf spark.dynamicAllocation.enabled=false --conf"
        + " spark.executor.instances=2, or set engine to rounds",
        refusal(conf, estimator().setSurvivors(true).setSyncMode("average"), table));
  }

  /** A copy of a task of survivors would join as one that is back. */
  @Test
  void survivorsUnderSpeculation() {
    SparkConf conf = conf().set("spark.speculation", "true");
    CaffeEstimator survivors = estimator().setSurvivors(true).setSyncMode("average");
    assertDoesNotThrow(() -> check(conf, survivors, table));
    conf.set("spark.speculation.task.duration.threshold", "10s");
    assertFinding("survivors is set and Spark copies every task that runs for longer than"
        + " spark.speculation.task.duration.threshold, and a copy takes the place of a member that trains:"
        + " add --conf spark.speculation=false, or leave out spark.speculation.task.duration.threshold",
        refusal(conf, survivors, table));
  }

  /** AlexNet's weights from eight shards; the heap of 1 GiB is this test's own. */
  @Test
  void roundsThatTheDriverCannotTake() {
    RoundsRoom room = RoundsRoom.of(8, 60_965_224);
    TrainingPlan plan = plan(estimator().setSyncMode("average"), table);
    List<String> findings = assertThrows(PreflightException.class,
        () -> Preflight.checkRounds(spark.sparkContext(), conf(), plan, table, room)).findings();
    assertEquals("a round sends 8 times 233 MiB to the driver at once, and"
        + " spark.driver.maxResultSize is 1024 MiB: add --conf spark.driver.maxResultSize=2326m",
        findings.get(0));
    assertTrue(findings.get(1).matches(".*at once, which needs about 4419 MiB of the driver's heap of"
        + " \\d+ MiB: add --driver-memory 5523m"), findings.get(1));
    SparkConf unlimited = conf().set("spark.driver.maxResultSize", "0");
    assertEquals(List.of(), room.findings(unlimited, 8L << 30));
  }

  @Test
  void roundsOfMoreThanAnArrayHolds() {
    List<String> findings = RoundsRoom.of(2, 600_000_000).findings(conf(), 64L << 30);
    assertEquals(List.of("engine rounds sends weights as bytes, of which there can be 2146435071, and"
        + " these are 2400000000: set engine to barrier, where a model may have any size"), findings);
  }

  @Test
  void aLargeModelWithoutAPlaceForIt() {
    spark.conf().set("spark.cafetiere.largestModel", "1k");
    try {
      assertFinding("the weights take 2 MiB, which is more than spark.cafetiere.largestModel (1 MiB),"
          + " so that the trained model is a file, and there is no place for it: set checkpointDir to a"
          + " folder that driver and executors can read and write",
          refusal(conf(), estimator(), table));
      TrainingPlan placed = plan(estimator().setCheckpointDir(dir.toUri().toString()), table);
      Preflight.check(spark.sparkContext(), conf(), placed, table);
    } finally {
      spark.conf().unset("spark.cafetiere.largestModel");
    }
  }

  @Test
  void tooLittleMemoryOverhead() {
    SparkConf conf = conf().set("spark.executor.memoryOverhead", "1m");
    String finding = refusal(conf, estimator(), table).get(0);
    assertTrue(finding.startsWith("the training needs about "), finding);
    assertTrue(finding.matches(".*add --conf spark.executor.memoryOverhead=\\d+m"), finding);
  }

  /** One that exchanges nothing keeps no gradients, here 2 MiB. */
  @Test
  void aRankAloneNeedsLessMemory() {
    SparkConf conf = conf().set("spark.executor.memoryOverhead", "1m");
    long alone = mibOfNet(refusal(conf, estimator().setNumWorkers(1), table).get(0));
    long of2 = mibOfNet(refusal(conf, estimator().setNumWorkers(1).setShards(2), table).get(0));
    assertTrue(alone < of2, alone + " MiB alone, " + of2 + " MiB of two shards");
  }

  private static long mibOfNet(String finding) {
    return Long.parseLong(finding.replaceAll(".*\\((\\d+) for the net.*", "$1"));
  }

  /** By its planner's estimate the table takes 286 MiB in each executor. */
  @Test
  void rowsBeyondTheirMemorySpillAndAreNoFault() {
    SparkConf conf = conf().set("spark.executor.memoryOverhead", "512m").remove("spark.local.dir");
    Dataset<Row> large = spark.range(20_000_000L).selectExpr(
        "id", "unhex(repeat('00', 784)) image", "cast(id % 10 as int) label");
    Preflight.check(spark.sparkContext(), conf, plan(estimator(), large), large);

    OptionalLong room = RowRoom.bytes(conf);
    assertEquals(OptionalLong.of(256L << 20), room);
    assertEquals(Optional.empty(), Preflight.spill(conf, 256L << 20, room));
    assertEquals("the rows are about 300 MiB in an executor, and 44 MiB beyond the 256 MiB for them"
        + " (spark.cafetiere.rowMemory) spill to files in Spark's local folder: the weights will be"
        + " the same; if the disk slows the training, use more executors or more memory",
        Preflight.spill(conf, 300L << 20, room).orElseThrow());
    String told = Preflight.spill(
        conf.set("spark.io.encryption.enabled", "true"), 300L << 20, room).orElseThrow();
    assertTrue(told.endsWith("; the files are not encrypted, though spark.io.encryption.enabled is set"),
        told);
    assertEquals(OptionalLong.of(64L << 20), RowRoom.bytes(conf.set(RowRoom.SETTING, "64m")));
  }

  @Test
  void theOverheadIsThatOfTheClusterManager() {
    SparkConf conf = new SparkConf(false).set("spark.master", "yarn").set("spark.executor.memory", "2g");
    assertEquals(384, RowRoom.overheadMib(conf));
    assertEquals(1024, RowRoom.overheadMib(conf.set("spark.executor.minMemoryOverhead", "1g")));
    conf.remove("spark.executor.minMemoryOverhead").set("spark.kubernetes.memoryOverheadFactor", "0.5");
    assertEquals(384, RowRoom.overheadMib(conf));
    assertEquals(1024, RowRoom.overheadMib(conf.set("spark.master", "k8s://https://host:443")));
    assertEquals(1536, RowRoom.overheadMib(conf.set("spark.executor.memoryOverheadFactor", "0.75")));
  }

  @Test
  void aColumnThatIsNotThere() {
    PreflightException e = assertThrows(PreflightException.class,
        () -> estimator().setFeaturesCol("imgae").setIdCol("key").fit(table));
    assertEquals(2, e.findings().size());
    assertEquals("the table has no column 'imgae': did you mean 'image'? It has: id, image, label",
        e.findings().get(0));
  }

  @Test
  void aGpuThatIsNotThere() {
    PreflightException e = assertThrows(PreflightException.class,
        () -> estimator().setRequireGpu(true).fit(table));
    assertEquals(List.of("requireGpu is set, and this version trains on the CPU alone: set it to"
        + " false"), e.findings());
  }

  @Test
  void tooFewPortsForTheRanksOfAHost() {
    assertFinding("spark.cafetiere.rankPorts is 41000, and each of 2 ranks of a host needs a port:"
        + " name 2 or more, as in 41000-41001",
        refusal(conf().set(PortRange.RANKS, "41000"), estimator(), table));
    assertFinding("spark.cafetiere.rankPorts is '9-8': set it to a port, or to two of them as in"
        + " 41000-41015", refusal(conf().set(PortRange.RANKS, "9-8"), estimator(), table));
  }

  @Test
  void aGpuIsWantedOnlyWhereTheSolverSaysSo() {
    assertTrue(described(TestImages.solver(10) + " solver_mode: GPU").wantsGpu());
    assertFalse(described("base_lr: 0.1 lr_policy: \"fixed\" max_iter: 1").wantsGpu());
  }

  @Test
  void aColumnOfATypeThatCannotBeFed() {
    Dataset<Row> dated = table.withColumn("image", functions.current_date());
    String message = assertThrows(PreflightException.class, () -> estimator().fit(dated))
        .getMessage();
    assertTrue(message.contains("column 'image' is of type date"), message);
  }

  @Test
  void aNetThatReadsFiles() {
    String data = "layer { name: \"mnist\" type: \"%s\" top: \"data\" top: \"label\" }\n";
    String classifier = TestNets.CLASSIFIER;
    String net = classifier.substring(classifier.indexOf("layer { name: \"hidden"));
    for (String type : List.of("WindowData", "AnnotatedData", "DenseImageData", "ImageSegData")) {
      CaffeEstimator estimator = estimator().setNet("# a comment\n" + data.formatted(type) + net);
      PreflightException e =
          assertThrows(PreflightException.class, () -> estimator.fit(table), type);
      assertEquals(1, e.findings().size());
      String finding = e.findings().get(0);
      assertTrue(finding.startsWith("net:2: layer 'mnist': "), finding);
      assertTrue(finding.contains("replace the layer by one of type MemoryData"), finding);
      assertTrue(finding.contains("or by Input or CoSData; featuresCol and labelCol"), finding);
    }
  }

  @Test
  void aLabelOutOfRange() {
    assertFinding("column 'label' of the row with id 207 holds 10, and the net's labels are the whole"
        + " numbers from 0 to 9: correct the label, or the num_output of the last layer",
        refusal(estimator(), with(207L, 10)));
  }

  @Test
  void aMissingLabel() {
    String finding = refusal(estimator(), with(207L, null)).get(0);
    assertTrue(finding.startsWith("column 'label' of the row with id 207 holds null"), finding);
  }

  @Test
  void aLabelThatTheLossPassesOver() {
    String net = TestImages.lenet().replaceAll(
        "(type: \"(SoftmaxWithLoss|Accuracy)\")", "$1 loss_param { ignore_label: 255 }"
            + " accuracy_param { ignore_label: 255 }");
    assertDoesNotThrow(() -> check(conf(), estimator().setNet(net), with(207L, 255)));
    assertEquals(1, refusal(estimator().setNet(net), with(207L, 254)).size());
  }

  @Test
  void aLabelBetweenTwoNumbers() {
    Dataset<Row> halves = table.withColumn("label", functions.expr("double(label) / 2"));
    String finding = refusal(estimator(), halves).get(0);
    assertTrue(finding.contains("holds 0.5"), finding);
  }

  @Test
  void rowsToTestOnAreMarkedByABooleanColumn() {
    CaffeEstimator marked = estimator().setValidationIndicatorCol("label");
    String refused = assertThrows(PreflightException.class, () -> marked.fit(table)).getMessage();
    assertTrue(refused.contains("'label' is of type int: it must be boolean"), refused);
    CaffeEstimator misspelt = estimator().setValidationIndicatorCol("lable");
    refused = assertThrows(PreflightException.class, () -> misspelt.fit(table)).getMessage();
    assertTrue(refused.contains("no column 'lable': did you mean 'label'?"), refused);
  }

  @Test
  void rowsToTrainAndToTestOnAreSomeOfThem() {
    for (boolean isHeld : new boolean[] {true, false}) {
      CaffeEstimator marked = estimator().setValidationIndicatorCol("held");
      String refused = assertThrows(PreflightException.class,
          () -> marked.fit(table.withColumn("held", functions.lit(isHeld)))).getMessage();
      assertTrue(refused.contains("validationIndicatorCol 'held' is true in "
          + (isHeld ? "all rows" : "no row")), refused);
    }
  }

  @Test
  void aTableWithoutRows() {
    Dataset<Row> empty = table.filter("id < 0");
    assertTrue(refusal(estimator(), empty).get(0).startsWith("the table has no rows"));
  }

  @Test
  void aCheckpointFolderThatCannotBeWritten() {
    String finding = refusal(estimator().setCheckpointDir("file:/proc/nowhere"), table).get(0);
    assertTrue(finding.startsWith("checkpoints cannot be written to file:/proc/nowhere"), finding);
    assertTrue(finding.contains("set checkpointDir to a folder that"), finding);
  }

  @Test
  void aTemporaryFolderThatIsNotTheUsers() throws Exception {
    Files.createFile(dir.resolve("cafetiere-" + System.getProperty("user.name")));
    String before = System.getProperty("java.io.tmpdir");
    System.setProperty("java.io.tmpdir", dir.toString());
    try {
      String finding = refusal(estimator(), table).get(0);
      assertTrue(finding.startsWith("checkpoints cannot be written to "), finding);
      assertTrue(finding.contains(" is no folder): set checkpointDir to "), finding);
    } finally {
      System.setProperty("java.io.tmpdir", before);
    }
  }

  /** As a cross-validation with several threads does. */
  @Test
  void whatAnotherPreflightTriesIsLeftAlone() throws Exception {
    Path other = Files.createDirectories(dir.resolve("run-preflight")).resolve("probe");
    Files.createFile(other);
    check(conf(), estimator().setCheckpointDir(dir.toUri().toString()), table);
    assertTrue(Files.exists(other), "the folder of another one was deleted");
  }

  @Test
  void aFolderThatExecutorsDoNotSee() {
    var file = new org.apache.hadoop.fs.Path(dir.resolve("nowhere").toUri());
    List<String> findings = ExecutorCheck.find(spark.sparkContext(), 2, file);
    assertEquals(1, findings.size(), "one sentence on both executors");
    assertTrue(findings.get(0).contains("not seen by executor "), findings.get(0));
  }

  @Test
  void survivorsOfAModeThatHasNone() {
    assertFinding("survivors is set and the ranks work together by allreduce, which makes every step"
        + " of all ranks: set syncMode to average, easgd, downpour, diloco, or survivors to false",
        refusal(estimator().setSurvivors(true), table));
    assertDoesNotThrow(() ->
        check(conf(), estimator().setSurvivors(true).setSyncMode("average"), table));
  }

  @Test
  void severalFaultsAreToldAtOnce() {
    PreflightException e = assertThrows(PreflightException.class, () -> check(conf(),
        estimator().setCheckpointDir("file:/proc/nowhere"), with(207L, -3)));
    assertEquals(2, e.findings().size());
    assertTrue(e.getMessage().startsWith("2 things to change"), e.getMessage());
  }

  private static NetDescription described(String solver) {
    return NetDescription.of(solver, TestImages.lenet(), "TRAIN");
  }

  private static CaffeEstimator estimator() {
    return new CaffeEstimator().setSolver(TestImages.solver(10)).setNet(TestImages.lenet())
        .setFeaturesCol("image").setLabelCol("label").setIdCol("id").setNumWorkers(2);
  }

  private static TrainingPlan plan(CaffeEstimator estimator, Dataset<Row> rows) {
    return TestNets.plan(estimator, rows);
  }

  private static Dataset<Row> with(long id, Integer label) {
    Row row = RowFactory.create(id, new byte[TestImages.SIDE * TestImages.SIDE], label);
    return table.union(spark.createDataFrame(List.of(row), TestImages.SCHEMA));
  }

  private static SparkConf conf() {
    return spark.sparkContext().getConf().clone();
  }

  private static List<String> refusal(CaffeEstimator estimator, Dataset<Row> rows) {
    return refusal(conf(), estimator, rows);
  }

  private static List<String> refusal(SparkConf conf, CaffeEstimator estimator, Dataset<Row> rows) {
    return assertThrows(PreflightException.class, () -> check(conf, estimator, rows)).findings();
  }

  private static void check(SparkConf conf, CaffeEstimator estimator, Dataset<Row> rows) {
    Preflight.check(spark.sparkContext(), conf, plan(estimator, rows), rows);
  }

  private static void assertFinding(String expected, List<String> findings) {
    assertEquals(List.of(expected), findings);
  }
}
