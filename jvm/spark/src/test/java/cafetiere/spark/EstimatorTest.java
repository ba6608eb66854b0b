// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.CafetiereException;
import cafetiere.spark.connect.RunReport;
import cafetiere.spark.plan.Epochs;
import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.function.FilterFunction;
import org.apache.spark.ml.Pipeline;
import org.apache.spark.ml.PipelineModel;
import org.apache.spark.ml.PipelineStage;
import org.apache.spark.ml.evaluation.MulticlassClassificationEvaluator;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.tuning.CrossValidator;
import org.apache.spark.ml.tuning.CrossValidatorModel;
import org.apache.spark.ml.tuning.ParamGridBuilder;
import org.apache.spark.ml.tuning.TrainValidationSplit;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.functions;
import org.apache.spark.util.LongAccumulator;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** An estimator trains over the executors and behaves as Spark ML's own do. */
class EstimatorTest {
  private static final int ROWS = 203;

  private static Dataset<Row> points;

  @TempDir Path folder;

  @BeforeAll
  static void table() {
    points = TestNets.points(TestCluster.session(), ROWS).repartition(3).cache();
  }

  @BothLines
  @Test
  void aSavedEstimatorSaysThatItsValidationRowsAreNot(@TempDir Path folder) throws IOException {
    CaffeEstimator estimator = new CaffeEstimator().setNet("layer { }");
    try (Logged logged = new Logged(CaffeEstimator.class)) {
      estimator.write().save(folder.resolve("without").toString());
      assertEquals("", logged.text());
      estimator.setValidationData(TestImages.session().range(1)).write()
          .save(folder.resolve("with").toString());
      assertTrue(logged.text().startsWith("WARN The rows of setValidationData are not saved"), logged.text());
      assertTrue(logged.text().contains("validationIndicatorCol"), logged.text());
    }
    assertEquals("layer { }", CaffeEstimator.load(folder.resolve("with").toString()).getNet());
  }

  @Test
  void aFittedNetTellsTheClassesApart() {
    CaffeModel model = estimator().fit(points);
    assertTrue(accuracy(model.transform(points)) > 0.9);
    assertEquals(ROWS, Json.parse(model.result()).get("rows_given").asLong());
    assertEquals(60, Json.parse(model.result()).get("steps").asLong());
  }

  @Test
  void aProgressBarTakesThePlaceOfTheConsolesLine() {
    assertTrue(printed(() -> estimator().fit(points)).contains("step 60/60"));
    SparkContext sc = points.sparkSession().sparkContext();
    sc.setLocalProperty("spark.cafetiere.hasProgressBar", "true");
    try {
      String text = printed(() -> estimator().fit(points));
      assertFalse(text.contains("step 60/60"), text);
      assertTrue(text.contains(ROWS + " rows given"), text);
    } finally {
      sc.setLocalProperty("spark.cafetiere.hasProgressBar", null);
    }
  }

  private static String printed(Runnable training) {
    PrintStream console = System.err;
    ByteArrayOutputStream text = new ByteArrayOutputStream();
    System.setErr(new PrintStream(text, true, StandardCharsets.UTF_8));
    try {
      training.run();
    } finally {
      System.setErr(console);
    }
    return text.toString(StandardCharsets.UTF_8);
  }

  @Test
  void theWeightsDoNotDependOnTheWorkers() {
    byte[] two = estimator().setShards(2).setNumWorkers(2).fit(points).weights();
    byte[] one = estimator().setShards(2).setNumWorkers(1).fit(points.repartition(7)).weights();
    assertArrayEquals(two, one);
  }

  @Test
  void theWeightsOfBfloat16DoNotDependOnTheWorkersOrTheEngine() {
    CaffeEstimator average = estimator().setShards(2).setSyncMode("average");
    byte[] exact = average.setNumWorkers(2).fit(points).weights();
    CaffeModel model = average.setPrecision("bf16").fit(points);
    byte[] one = average.setNumWorkers(1).fit(points.repartition(7)).weights();
    assertArrayEquals(model.weights(), one);
    assertArrayEquals(one, average.setEngine("rounds").fit(points).weights());
    assertFalse(Arrays.equals(one, exact));
    assertTrue(accuracy(model.transform(points)) > 0.9);
  }

  @Test
  void paramsReplaceFieldsOfTheSolver() {
    String solver = "type: 'Adam' base_lr: 0.01 momentum: 0.8 weight_decay: 0.001 lr_policy: 'cosine'"
        + " max_iter: 60 random_seed: 7";
    String net = TestNets.CLASSIFIER.replace("batch_size: 8", "batch_size: 20");
    byte[] written = alone().setSolver(solver).setNet(net).fit(points).weights();
    CaffeEstimator set = alone().setOptimizer("Adam").setBaseLr(0.01).setMomentum(0.8)
        .setWeightDecay(0.001).setLrSchedule("cosine").setBatchSize(20);
    assertArrayEquals(written, set.fit(points).weights());
    assertArrayEquals(written, set.setSyncMode("average").setEngine("rounds").fit(points).weights());
    CaffeEstimator learner = alone();
    ParamMap[] grid = new ParamGridBuilder()
        .addGrid(learner.baseLr(), new double[] {1e-6, 0.5}).build();
    double[] accuracies = new TrainValidationSplit().setEstimator(learner).setEstimatorParamMaps(grid)
        .setEvaluator(new MulticlassClassificationEvaluator().setMetricName("accuracy"))
        .setSeed(1).setParallelism(2).fit(points.withColumn("label", points.col("label").cast("double")))
        .validationMetrics();
    assertTrue(accuracies[1] > accuracies[0] + 0.2, () -> Arrays.toString(accuracies));
  }

  @Test
  void foldsThatAreTrainedAtOnceShareTheSlots() {
    CaffeEstimator learner = estimator().setNumWorkers(2).setMaxIter(20);
    ParamMap[] grid = new ParamGridBuilder().addGrid(learner.batchSize(), new int[] {8, 16}).build();
    CrossValidator folds = new CrossValidator().setEstimator(learner).setEstimatorParamMaps(grid)
        .setEvaluator(new MulticlassClassificationEvaluator().setMetricName("accuracy"))
        .setNumFolds(2).setSeed(1);
    Dataset<Row> labelled = points.withColumn("label", points.col("label").cast("double"));
    double[] alone = folds.setParallelism(1).fit(labelled).avgMetrics();
    assertArrayEquals(alone, folds.setParallelism(3).fit(labelled).avgMetrics());
  }

  @Test
  void epochsAreTurnedIntoSteps() {
    // Two shards of 102 and 101 rows make 13 batches of 8 each.
    CaffeModel model = alone().setShards(2).setEpochs(3).fit(points);
    assertEquals(39, Json.parse(model.result()).get("steps").asLong());
  }

  @ParameterizedTest
  @ValueSource(strings = {"barrier", "rounds"})
  void aPolicyThatAsksForTheEndHasItFromTheEpochs(String engine) {
    String solver = "base_lr: 0.5 lr_policy: \"cosine\" momentum: 0.9 random_seed: 7";
    CaffeModel model = alone().setShards(2).setEpochs(2).setSolver(solver).setSyncMode("average")
        .setEngine(engine).fit(points);
    assertEquals(26, Json.parse(model.result()).get("steps").asLong());
  }

  @BothLines
  @Test
  void heldOutRowsAreNotTrainedOn() {
    // Where the mark is missing, the row is trained on.
    Dataset<Row> marked = points.withColumn("held", functions.expr("if(id = 0, null, id % 5 = 4)"));
    long held = marked.filter("held").count();
    String solver = TestNets.SOLVER + "test_interval: 20 test_iter: 1\n";
    CaffeModel model = estimator().setSolver(solver).setValidationIndicatorCol("held").fit(marked);
    assertEquals(ROWS - held, Json.parse(model.result()).get("rows_given").asLong());
    assertTrue(model.events().contains("\"test\""), model.events());
  }

  @ParameterizedTest
  @ValueSource(strings = {"barrier", "survivors", "rounds"})
  void heldOutRowsAreTestedOnceAnEpochWhereTheSolverSaysNothing(String engine) {
    // 162 rows in 2 shards make 11 batches of 8 each.
    Dataset<Row> marked = points.withColumn("held", functions.expr("id % 5 = 4"));
    CaffeEstimator estimator = estimator().setShards(2).setValidationIndicatorCol("held")
        .setMaxIter(22).setSolver(TestNets.SOLVER + "test_interval: 0\n");
    if (!engine.equals("barrier")) estimator.setSyncMode("average").setSyncPeriod(11);
    if (engine.equals("survivors")) estimator.setSurvivors(true);
    if (engine.equals("rounds")) estimator.setEngine("rounds");
    List<Long> tested = new ArrayList<>();
    for (String line : estimator.fit(marked).events().split("\n")) {
      JsonNode event = Json.parse(line);
      if (event.path("event").asText().equals("test")) tested.add(event.path("step").asLong());
    }
    assertEquals(List.of(0L, 11L, 22L), tested);
  }

  @Test
  void theSizeOfAStepIsTold() {
    try (Logged logged = new Logged(CaffeEstimator.class)) {
      estimator().plan(points);
      assertTrue(logged.text().contains("WARN A step takes 16 rows: the net's batch of 8 x 2 shards,"
          + " as many as there are workers, since shards is not set"), logged.text());
    }
    try (Logged logged = new Logged(CaffeEstimator.class)) {
      estimator().setShards(4).setSolver(TestNets.SOLVER + "iter_size: 3\n").plan(points);
      assertTrue(logged.text().contains(
          "INFO A step takes 96 rows: the net's batch of 8 x 4 shards x iter_size 3"),
          logged.text());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"barrier", "rounds"})
  void epochsNeedNoPassOfTheirOwn(String engine) {
    LongAccumulator made = points.sparkSession().sparkContext().longAccumulator();
    Dataset<Row> counted = points.filter((FilterFunction<Row>) row -> {
      made.add(1);
      return true;
    });
    CaffeEstimator estimator = estimator().setShards(2).setEngine(engine).setSyncMode("average");
    byte[] steps = estimator.copy(ParamMap.empty()).setMaxIter(39).fit(points).weights();
    CaffeModel model = estimator.setEpochs(3).fit(counted);
    assertEquals(39, Json.parse(model.result()).get("steps").asLong());
    assertArrayEquals(steps, model.weights());
    long once = made.value();
    estimator.setEpochs(0).setMaxIter(39).fit(counted);
    assertEquals(made.value() - once, once);
  }

  @Test
  void onlySurvivorsCountTheirRowsBefore() {
    try (Logged logged = new Logged(Epochs.class)) {
      alone().setEpochs(2).plan(points);
      assertEquals("", logged.text());
      estimator().setSurvivors(true).setSyncMode("average").setEpochs(2).plan(points);
      assertTrue(logged.text().contains("Counting the rows"), logged.text());
    }
  }

  @Test
  void trainingGoesOnFromSavedWeightsAndState() {
    CaffeModel whole = alone().setMaxIter(40).fit(points);
    CaffeModel half = alone().setMaxIter(20).fit(points);
    String weights = folder.resolve("half.caffemodel").toString();
    String state = folder.resolve("half.solverstate").toString();
    HadoopFiles.write(weights, half.weights(), new org.apache.hadoop.conf.Configuration());
    HadoopFiles.write(state, half.solverState(), new org.apache.hadoop.conf.Configuration());
    CaffeModel resumed =
        alone().setMaxIter(40).setWeights(weights).setSnapshot(state).fit(points);
    assertArrayEquals(whole.weights(), resumed.weights());
  }

  @Test
  void filesThatAreNoWeightsAreNamedByTheirParam() throws Exception {
    Path text = folder.resolve("notes.txt");
    Files.writeString(text, "no weights");
    CaffeEstimator estimator = alone().setMaxIter(2).setWeights(text.toString());
    String told = assertThrows(CafetiereException.class, () -> estimator.fit(points)).getMessage();
    assertTrue(told.contains("weights: is not a caffemodel") && !told.contains("/weights"), told);
    assertEquals("failed", state(estimator.uid()));
  }

  /** What Spark's UI shows of the estimator's run, when it shows that the run has ended. */
  private static String state(String owner) throws InterruptedException {
    while (true) {
      String state = new RunReport().setOwner(owner).transform(points).first().getAs("state");
      if (!state.equals("running")) return state;
      Thread.sleep(10); // Spark's queue
    }
  }

  @BothLines
  @Test
  void aPipelineTrainsAndSurvivesSaving() throws Exception {
    Pipeline pipeline = new Pipeline().setStages(new PipelineStage[] {estimator()});
    String path = folder.resolve("pipeline").toString();
    pipeline.write().save(path);
    PipelineModel model = Pipeline.load(path).fit(points);
    assertTrue(accuracy(model.transform(points)) > 0.9);
  }

  @BothLines
  @Test
  void aCrossValidatorPicksTheBetterSetting() {
    CaffeEstimator estimator = alone();
    ParamMap[] grid = new ParamGridBuilder()
        .addGrid(estimator.maxIter(), new long[] {1, 60}).build();
    CrossValidatorModel best = new CrossValidator()
        .setEstimator(estimator).setEstimatorParamMaps(grid).setNumFolds(2).setSeed(3)
        .setEvaluator(new MulticlassClassificationEvaluator().setMetricName("accuracy"))
        .fit(points);
    assertTrue(best.avgMetrics()[1] > best.avgMetrics()[0]);
    CaffeModel model = (CaffeModel) best.bestModel();
    assertEquals(60, Json.parse(model.result()).get("steps").asLong());
  }

  @Test
  void aNetWithinTheSolverIsUsed() {
    String solver = TestNets.SOLVER + "net_param { " + TestNets.CLASSIFIER + " }";
    CaffeModel model = alone().setSolver(solver).setNet("").fit(points);
    assertTrue(accuracy(model.transform(points)) > 0.9);
  }

  /** The test net has a score of its own; the net to train has none. */
  @Test
  void theTestNetOfASolverIsUsed(@TempDir Path dir) throws Exception {
    String accuracy = " layer { name: 'right' type: 'Accuracy' bottom: 'score' bottom: 'label'"
        + " top: 'right' }";
    Files.writeString(dir.resolve("train.prototxt"), TestNets.CLASSIFIER);
    Files.writeString(dir.resolve("test.prototxt"), TestNets.CLASSIFIER + accuracy);
    String solver = TestNets.SOLVER + "test_interval: 30 test_iter: 1 train_net: '"
        + dir.resolve("train.prototxt") + "' test_net: '" + dir.resolve("test.prototxt") + "'";
    CaffeEstimator estimator = alone().setSolver(solver).setNet("").setValidationData(points);
    CaffeModel model = estimator.fit(points);
    assertTrue(model.events().contains("\"right\":"), model.events());
    assertTrue(model.getNet().contains("Accuracy"), model.getNet());
    estimator.setNet(TestNets.CLASSIFIER);
    assertTrue(assertThrows(PreflightException.class, () -> estimator.fit(points)).getMessage()
        .contains("names test nets of its own"));
  }

  @Test
  void paramsThatContradictEachOtherAreRefused() {
    for (CaffeEstimator estimator : new CaffeEstimator[] {
        estimator().setEpochs(1).setMaxIter(1), estimator().setSnapshot("x.solverstate"),
        estimator().setResume(true),
        estimator().setValidationData(points).setValidationIndicatorCol("held")}) {
      assertThrows(IllegalArgumentException.class, () -> estimator.fit(points));
    }
  }

  @Test
  void anUnknownSyncModeIsRefused() {
    String message = assertThrows(RuntimeException.class,
        () -> estimator().setSyncMode("averge").fit(points)).getMessage();
    assertTrue(message.contains("averge") && message.contains("did you mean \"average\""), message);
  }

  @Test
  void aMissingColumnIsRefusedByName() {
    String message = assertThrows(IllegalArgumentException.class,
        () -> estimator().setFeaturesCol("feature").fit(points)).getMessage();
    assertTrue(message.contains("'feature'") && message.contains("'features'"), message);
  }

  @Test
  void aBrokenNetIsRefusedBeforeTheJob() {
    String net = TestNets.CLASSIFIER.replace("bottom: \"hidden\" top: \"score\"",
        "bottom: \"hiden\" top: \"score\"");
    String message = assertThrows(RuntimeException.class,
        () -> estimator().setNet(net).fit(points)).getMessage();
    assertTrue(message.contains("hiden"), message);
  }

  @Test
  void thePathOfAnOnnxModelIsRefusedWithTheWayToReadIt() {
    String message = assertThrows(PreflightException.class,
        () -> estimator().setNet("digits.onnx").fit(points)).getMessage();
    assertTrue(message.contains("\"digits.onnx\" seems to be a path; read the model with"
        + " import_onnx (docs/onnx.md)"), message);
  }

  private static CaffeEstimator estimator() {
    return new CaffeEstimator().setSolver(TestNets.SOLVER).setNet(TestNets.CLASSIFIER)
        .setIdCol("id").setNumWorkers(2);
  }

  /** Of one rank: Spark takes a second to have two of them meet. */
  private static CaffeEstimator alone() {
    return estimator().setNumWorkers(1);
  }

  private static double accuracy(Dataset<Row> predictions) {
    return predictions.filter("prediction = label").count() / (double) predictions.count();
  }
}
