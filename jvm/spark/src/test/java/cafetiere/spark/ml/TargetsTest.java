// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.BothLines;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.KillTest;
import cafetiere.spark.LongRun;
import cafetiere.spark.PreflightException;
import cafetiere.spark.TestImages;
import cafetiere.spark.TrainingSummary;
import cafetiere.spark.TrainingSummary.EarlyStopping;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.ml.evaluation.Evaluator;
import org.apache.spark.ml.evaluation.MultilabelClassificationEvaluator;
import org.apache.spark.ml.evaluation.RegressionEvaluator;
import org.apache.spark.ml.linalg.Vector;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.tuning.ParamGridBuilder;
import org.apache.spark.ml.tuning.TrainValidationSplit;
import org.apache.spark.ml.tuning.TrainValidationSplitModel;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a net of a table learns: weights, several labels, losses, and when it stops. */
class TargetsTest {
  private static SparkSession spark;
  private static Dataset<Row> train;

  @BeforeAll
  static void makeTable() {
    spark = TestImages.session();
    train = Visitors.table(spark, 0, 800).selectExpr("*", "1 + id % 3 weight", "city = 'city 3' c3",
        "array(buys, if(visits > 5, 1.0, 0.0)) flags", "array(paid, -visits) numbers")
        .repartition(3).cache();
  }

  private static CaffeClassifier classifier() {
    return new CaffeClassifier().setFeaturesCols("age", "city").setLabelCol("answer").setIdCol("id")
        .setNumWorkers(2).setBatchSize(64).setMaxEpochs(2);
  }

  private static CaffeRegressor regressor() {
    return new CaffeRegressor().setFeaturesCols("city", "visits", "taste").setLabelCol("paid")
        .setIdCol("id").setNumWorkers(2).setBatchSize(64).setMaxEpochs(2);
  }

  @BothLines
  @Test
  void weightsOfRowsAndClassesDoNotDependOnThePartitioning() {
    CaffeClassifier weighted = classifier().setWeightCol("weight").setClassWeights("yes=3, no=0.5");
    CaffeClassificationModel model = weighted.fit(train);
    assertArrayEquals(model.caffeModel().weights(),
        weighted.fit(train.repartition(5)).caffeModel().weights());
    assertFalse(Arrays.equals(model.caffeModel().weights(),
        classifier().fit(train).caffeModel().weights()));
    // Rows to predict need no weights, and bad ones do no harm.
    List<Row> plain = model.transform(train.drop("weight", "answer").orderBy("id")).select("probability").collectAsList();
    assertEquals(plain, model.transform(train.drop("weight").selectExpr("*", "-1 weight").orderBy("id"))
        .select("probability").collectAsList());
    long yes = model.transform(train).filter("predictedLabel = 'yes'").count();
    long balanced = classifier().setClassWeights("balanced").fit(train).transform(train)
        .filter("predictedLabel = 'yes'").count();
    assertTrue(yes > balanced, yes + " rows of a class that counts six times, and " + balanced);
  }

  @Test
  void weightsThatAreNoneAreRefused() {
    for (String weight : List.of("-1.0", "double('NaN')", "cast(null as double)")) {
      Dataset<Row> bad = train.drop("weight").selectExpr("*", "if(id = 77, " + weight + ", 1.0) weight");
      String told = assertThrows(Exception.class,
          () -> classifier().setWeightCol("weight").fit(bad)).getMessage();
      assertTrue(told.contains("column \"weight\", id 77"), told);
    }
    assertTrue(assertThrows(PreflightException.class,
        () -> classifier().setWeightCol("answer").fit(train)).getMessage().contains("is a label, and weightCol"));
    assertTrue(assertThrows(PreflightException.class,
        () -> classifier().setWeightCol("city").setFeaturesCols("age").fit(train)).getMessage()
        .contains("the weight 'city' is of type string"));
  }

  @BothLines
  @Test
  void severalLabelsHoldOrDoNot(@TempDir Path folder) throws Exception {
    CaffeClassificationModel model = classifier().setFeaturesCols("age", "city", "visits")
        .setLabelCol("flags").setMaxEpochs(15).setBaseLr(0.01).fit(train);
    assertTrue(model.hasSeveralLabels());
    assertArrayEquals(new String[] {"0", "1"}, model.labels());
    model.write().save(folder.resolve("model").toString());
    CaffeClassificationModel loaded = CaffeClassificationModel.load(folder.resolve("model").toString());
    Dataset<Row> out = loaded.transform(train);
    assertEquals(model.transformSchema(train.schema()), out.schema());
    long right = 0;
    for (Row row : out.collectAsList()) {
      Vector probability = row.getAs("probability");
      Vector prediction = row.getAs("prediction");
      for (int i = 0; i < 2; i++) {
        assertEquals(probability.apply(i) > 0.5 ? 1 : 0, prediction.apply(i));
        assertEquals(prediction.apply(i) == 1, row.getList(row.fieldIndex("predictedLabel")).contains((double) i));
      }
      if (prediction.apply(1) == (row.getInt(row.fieldIndex("visits")) > 5 ? 1 : 0)) right++;
    }
    assertTrue(right > 760, right + " of 800");
    Dataset<Row> indices = out.selectExpr("predictedLabel", "filter(array(0D, 1D), i ->"
        + " element_at(flags, int(i) + 1) = 1) label");
    assertTrue(new MultilabelClassificationEvaluator().setPredictionCol("predictedLabel")
        .setMetricName("microF1Measure").evaluate(indices) > 0.8);
    CaffeClassificationModel never = loaded.copy(ParamMap.empty()).setThresholds(1, 1);
    assertEquals(0, never.transform(train).filter("size(predictedLabel) > 0").count());
    never.exportOnnx(folder.resolve("never.onnx").toString());
    assertTrue(Files.exists(folder.resolve("never.onnx")));
    assertTrue(assertThrows(Exception.class, () -> classifier().setLabelCol("flags")
        .fit(train.selectExpr("id", "age", "city", "array(2D, 0D) flags"))).getMessage()
        .contains("column \"flags\""));
  }

  @Test
  void labelsOfSeveralHaveWeights() {
    CaffeClassifier plain = classifier().setLabelCol("flags").setMaxEpochs(10).setBaseLr(0.01);
    CaffeClassifier weighted = plain.copy(ParamMap.empty()).setClassWeights("1=9").setWeightCol("weight");
    CaffeClassificationModel model = weighted.fit(train);
    assertArrayEquals(model.caffeModel().weights(),
        weighted.fit(train.repartition(5)).caffeModel().weights());
    double seldom = meanOfSecond(plain.fit(train));
    assertTrue(meanOfSecond(model) > seldom + 0.1, "a label that counts nine times, and " + seldom);
    assertTrue(Math.abs(meanOfSecond(plain.copy(ParamMap.empty()).setClassWeights("balanced").fit(train)) - 0.5) < 0.1);
    // Rows to predict need no label.
    assertEquals(800, model.transform(train.drop("weight", "flags")).filter("prediction is not null").count());
    String told = assertThrows(Exception.class, () -> weighted.setClassWeights("2=3").fit(train)).getMessage();
    assertTrue(told.contains("the labels of column \"flags\" are called 0 to 1"), told);
  }

  private static double meanOfSecond(CaffeClassificationModel model) {
    return model.transform(train).select("probability").collectAsList().stream()
        .mapToDouble(row -> row.<Vector>getAs(0).apply(1)).average().getAsDouble();
  }

  @Test
  void severalNumbersAreAVectorInTheirOwnUnits() {
    CaffeRegressionModel vector = regressor().setLabelCol("numbers").setMaxEpochs(30).fit(train);
    CaffeRegressionModel columns = regressor().setLabelCols("paid", "visits").setMaxEpochs(30)
        .setFeaturesCols("city", "taste", "age").fit(train);
    assertEquals(2, vector.numOutputs());
    assertEquals("CaffeRegressionModel: uid=" + vector.uid() + ", numOutputs=2", vector.toString());
    double sum = 0;
    for (Row row : vector.transform(train).selectExpr("prediction", "visits").collectAsList()) {
      double error = row.<Vector>getAs(0).apply(1) + row.getInt(1);
      sum += error * error;
    }
    assertTrue(Math.sqrt(sum / 800) < 0.5, "visits are a feature: " + Math.sqrt(sum / 800));
    Row row = columns.transform(train.drop("paid", "visits")).select("prediction").first();
    assertEquals(2, row.<Vector>getAs(0).size());
  }

  @Test
  void quantilesAreAVectorAndTheirMedian() {
    CaffeRegressionModel model = regressor().setLoss("quantile").setQuantiles(0.1, 0.5, 0.9)
        .setFeaturesCols("taste").setMaxEpochs(40).setBaseLr(0.01).fit(train);
    Dataset<Row> out = model.transform(train).cache();
    for (int i = 0; i < 3; i++) {
      long below = 0;
      for (Row row : out.select("paid", "quantiles", "prediction").collectAsList()) {
        Vector quantiles = row.getAs(1);
        if (row.getDouble(0) < quantiles.apply(i)) below++;
        assertEquals(quantiles.apply(1), row.getDouble(2));
      }
      assertEquals(new double[] {80, 400, 720}[i], below, 60, "rows below quantile " + i);
    }
    assertTrue(assertThrows(PreflightException.class, () -> regressor().setLoss("quantile").fit(train))
        .getMessage().contains("set quantiles"));
  }

  @Test
  void aGridOverLossesInParallel() {
    CaffeRegressor regressor = regressor().setNumWorkers(1).setOptimizer("Nesterov").setLrSchedule("linear");
    Evaluator evaluator = new RegressionEvaluator().setLabelCol("paid");
    TrainValidationSplit split = new TrainValidationSplit().setEstimator(regressor)
        .setEvaluator(evaluator).setTrainRatio(0.7).setSeed(3)
        .setEstimatorParamMaps(new ParamGridBuilder()
            .addGrid(regressor.loss(), Visitors.list("squared", "huber")).build());
    TrainValidationSplitModel apart = split.setParallelism(2).fit(train);
    TrainValidationSplitModel alone = split.setParallelism(1).fit(train);
    assertArrayEquals(alone.validationMetrics(), apart.validationMetrics());
    assertEquals(2, Arrays.stream(apart.validationMetrics()).distinct().count());
  }

  private static CaffeRegressor stopping() {
    return regressor().setLayers(64).setBaseLr(0.02).setLrSchedule("fixed").setMaxEpochs(60)
        .setValidationFraction(0.25).setPatience(3).setTol(1e-4);
  }

  @BothLines
  @Test
  void theBestEpochIsKept() {
    Dataset<Row> few = train.limit(160).cache();
    CaffeRegressionModel model = stopping().fit(few);
    EarlyStopping stopped = model.summary().earlyStopping();
    assertTrue(stopped.stopped() && stopped.bestEpoch() > 0, model.summary().toString());
    assertEquals(stopped.bestStep() + 3 * stopped.interval(), model.summary().steps());
    assertEquals(stopped.bestEpoch() + 4, stopped.curve().size());
    assertTrue(model.summary().rowsGiven() > 90 && model.summary().rowsGiven() < 150);
    CaffeRegressionModel other = stopping().fit(few.repartition(7));
    assertArrayEquals(model.caffeModel().weights(), other.caffeModel().weights());
    CaffeRegressionModel ended = stopping().setPatience(0).setMaxIter(stopped.bestStep()).fit(few);
    assertArrayEquals(model.caffeModel().weights(), ended.caffeModel().weights());
  }

  @Test
  void theRoundsStopAsRanksDo() {
    Dataset<Row> few = train.limit(160).cache();
    CaffeRegressor average = stopping().setSyncMode("average").setSyncPeriod(2).setIdCol("")
        .setFeaturesCols("taste", "visits");  // a vector without an id is hashed by its values
    CaffeRegressionModel rounds = average.setEngine("rounds").fit(few);
    CaffeRegressionModel ranks = average.setEngine("barrier").fit(few);
    assertTrue(rounds.summary().earlyStopping().stopped(), rounds.summary()::toString);
    assertEquals(ranks.summary().earlyStopping().bestStep(),
        rounds.summary().earlyStopping().bestStep());
    assertArrayEquals(ranks.caffeModel().weights(), rounds.caffeModel().weights());
  }

  @LongRun
  @Test
  void aKilledExecutorCostsNoBitOfTheBestWeights(@TempDir Path one, @TempDir Path other)
      throws Exception {
    TrainingSummary undisturbed = fitImages(one);
    assertTrue(undisturbed.earlyStopping().bestStep() < 60, undisturbed::toString);
    long victim = TestImages.executorPids(spark).get(0);
    CompletableFuture<Boolean> killed = CompletableFuture.supplyAsync(() -> {
      KillTest.awaitCheckpoint(other);
      return ProcessHandle.of(victim).map(ProcessHandle::destroyForcibly).orElse(false);
    });
    TrainingSummary summary = fitImages(other);
    assertTrue(killed.get(), "the executor was gone before it was killed");
    assertEquals(2, summary.attempts());
    assertEquals(undisturbed.sha256(), summary.sha256());
    assertEquals(undisturbed.earlyStopping(), summary.earlyStopping());
  }

  /** The held-out images have wrong labels: the best weights are early ones. */
  private static TrainingSummary fitImages(Path checkpoints) {
    Dataset<Row> images = TestImages.images(spark, 1007).cache();
    return new CaffeEstimator().setNet(TestImages.lenet()).setFeaturesCol("image")
        .setSolver(TestImages.solver(120) + " test_interval: 5 early_stopping { }")
        .setNumWorkers(TestImages.EXECUTORS).setShards(4).setCheckpointInterval(20)
        .setCheckpointDir(checkpoints.toUri().toString())
        .setValidationData(images.filter("id < 100").selectExpr("id", "image", "(label + 1) % 10 label"))
        .fit(images).summary();
  }

  @Test
  void aModelGoesOnFromASavedOne(@TempDir Path folder) throws Exception {
    CaffeClassificationModel first = classifier().setFeaturesCols("age", "city").fit(train);
    String path = folder.resolve("first").toString();
    first.write().save(path);
    Dataset<Row> others = Visitors.table(spark, 800, 1100).cache();
    CaffeClassifier tuned = classifier().setInitialModel(path).setFrozenLayers("embedding", "hidden1")
        .setMaxEpochs(1);
    CaffeClassificationModel model = tuned.fit(others);
    assertTrue(model.caffeModel().getNet().contains("lr_mult: 0"));
    assertFalse(Arrays.equals(first.caffeModel().weights(), model.caffeModel().weights()));
    Dataset<Row> out = model.transform(others);
    assertTrue(out.filter("predictedLabel = answer").count() > 200);
    assertTrue(assertThrows(Exception.class, () -> tuned.copy(ParamMap.empty()).setFeaturesCols("age")
        .fit(others)).getMessage().contains("column \"city\", which the initial model"));
  }

  @Test
  void aModelGoesOnFromACaffemodel(@TempDir Path folder) throws Exception {
    CaffeClassifier classifier = classifier().setFeaturesCols("age", "city").setMaxEpochs(1);
    CaffeClassificationModel model = classifier.fit(train);
    byte[] weights = model.caffeModel().weights();
    Path file = Files.write(folder.resolve("first.caffemodel"), weights);
    CaffeClassifier again = classifier.setInitialModel(file.toString()).setBaseLr(0).setSeed(99);
    assertArrayEquals(weights, again.fit(train).caffeModel().weights());
  }

  @Test
  void initialModelIsThatOfOneNet(@TempDir Path folder) throws Exception {
    Files.createDirectories(folder.resolve("pipeline/stages"));
    Files.createDirectories(folder.resolve("keyed/nets"));
    assertTrue(refusal(regressor().setInitialModel(folder.resolve("pipeline").toString()))
        .contains("pipeline is a saved pipeline: give the path of its model"));
    assertTrue(refusal(regressor().setInitialModel(folder.resolve("keyed").toString()))
        .contains("keyed has a net for each key"));
    assertTrue(refusal(regressor().setInitialModel("/nowhere"))
        .contains("initialModel: there is no saved model of a table at /nowhere"));
  }

  @Test
  void rowsToTestOnAreSomeOfThem() {
    for (boolean isHeld : new boolean[] {true, false}) {
      Dataset<Row> marked = train.withColumn("held", functions.lit(isHeld));
      String why = "validationIndicatorCol 'held' is true in " + (isHeld ? "all rows" : "no row");
      String told = assertThrows(PreflightException.class,
          () -> regressor().setValidationIndicatorCol("held").fit(marked)).getMessage();
      assertTrue(told.contains(why), told);
      told = assertThrows(PreflightException.class,
          () -> classifier().setValidationIndicatorCol("held").fit(marked)).getMessage();
      assertTrue(told.contains(why), told);
    }
  }

  @Test
  void aRowWithoutANumberToLearnIsNamed() {
    for (String none : List.of("double('NaN')", "NULL")) {
      Dataset<Row> gap = train.withColumn("paid", functions.expr("if(id = 7, " + none + ", paid)"));
      String told = assertThrows(Exception.class, () -> regressor().fit(gap)).getMessage();
      assertTrue(told.contains("column 'paid', id 7: the label is missing; drop such rows"), told);
    }
  }

  @Test
  void paramsWithoutWhatTheyAreForAreRefused() {
    assertTrue(refusal(regressor().setQuantiles(0.5)).contains("quantiles is set, and loss is squared"));
    assertTrue(refusal(regressor().setHuberDelta(2)).contains("huberDelta is set, and loss is squared"));
    assertTrue(refusal(regressor().setMinGroupRows(9)).contains("minGroupRows is set, and groupCol is not"));
    assertTrue(refusal(regressor().setNumWorkers(1).setGroupCol("paid"))
        .contains("'paid' is the label, and groupCol"));
  }

  @Test
  void whatCannotStopEarlyIsRefused() {
    assertTrue(refusal(stopping().setValidationFraction(0)).contains("no rows to test on"));
    assertTrue(refusal(stopping().setValidationIndicatorCol("c3")).contains("use one of them"));
  }

  private static String refusal(CaffeRegressor regressor) {
    return assertThrows(PreflightException.class, () -> regressor.fit(train)).getMessage();
  }
}
