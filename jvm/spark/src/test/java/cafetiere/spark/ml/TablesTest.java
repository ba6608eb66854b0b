// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.CafetiereException;
import cafetiere.spark.BothLines;
import cafetiere.spark.CaffeModel;
import cafetiere.spark.PreflightException;
import cafetiere.spark.TestImages;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.ml.Pipeline;
import org.apache.spark.ml.PipelineModel;
import org.apache.spark.ml.PipelineStage;
import org.apache.spark.ml.attribute.AttributeGroup;
import org.apache.spark.ml.evaluation.BinaryClassificationEvaluator;
import org.apache.spark.ml.evaluation.Evaluator;
import org.apache.spark.ml.evaluation.MulticlassClassificationEvaluator;
import org.apache.spark.ml.evaluation.RegressionEvaluator;
import org.apache.spark.ml.linalg.Vector;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.tuning.CrossValidator;
import org.apache.spark.ml.tuning.CrossValidatorModel;
import org.apache.spark.ml.tuning.ParamGridBuilder;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tables of numbers, texts, dates and gaps, by Spark ML's own contract. */
class TablesTest {
  private static final String[] FEATURES = {"age", "city", "visits", "since", "seen", "taste"};

  private static SparkSession spark;
  private static Dataset<Row> train;
  private static Dataset<Row> heldOut;
  private static CaffeClassificationModel answers;  // of one epoch

  @BeforeAll
  static void makeTables() {
    spark = TestImages.session();
    train = Visitors.table(spark, 0, 2000).repartition(3).cache();
    heldOut = Visitors.table(spark, 2000, 2600).coalesce(1).cache();
    answers = classifier().setLabelCol("answer").setMaxEpochs(1).fit(train);
  }

  private static CaffeClassifier classifier() {
    return new CaffeClassifier().setFeaturesCols(FEATURES).setLabelCol("buys").setIdCol("id")
        .setNumWorkers(2).setBatchSize(64).setMaxEpochs(8);
  }

  @BothLines
  @Test
  void aPipelineLearnsIsSavedAndIsLoaded(@TempDir Path folder) throws Exception {
    Pipeline pipeline = new Pipeline().setStages(new PipelineStage[] {classifier()});
    PipelineModel model = pipeline.fit(train);
    Dataset<Row> out = model.transform(heldOut).cache();
    Evaluator accuracy = new MulticlassClassificationEvaluator().setLabelCol("buys")
        .setMetricName("accuracy");
    assertTrue(accuracy.evaluate(out) > Visitors.BEST - 0.06, () -> "" + accuracy.evaluate(out));
    Evaluator f1 = new MulticlassClassificationEvaluator().setLabelCol("buys").setMetricName("f1");
    assertEquals(accuracy.evaluate(out), f1.evaluate(out), 0.02);  // half of them buy
    Evaluator auc = new BinaryClassificationEvaluator().setLabelCol("buys");
    assertTrue(auc.evaluate(out) > Visitors.BEST - 0.08, () -> "" + auc.evaluate(out));
    for (Row row : out.select("rawPrediction", "probability", "prediction", "predictedLabel").takeAsList(20)) {
      Vector probability = row.getAs(1);
      assertEquals(1, probability.apply(0) + probability.apply(1), 1e-5);
      assertEquals(2, row.<Vector>getAs(0).size());
      assertEquals(probability.argmax(), row.getDouble(2));
      assertEquals("" + (int) row.getDouble(2), row.getString(3));
    }

    model.write().overwrite().save(folder.resolve("model").toString());
    PipelineModel loaded = PipelineModel.load(folder.resolve("model").toString());
    assertEquals(out.collectAsList(), loaded.transform(heldOut).collectAsList());
    pipeline.write().save(folder.resolve("pipeline").toString());
    CaffeClassifier again =
        (CaffeClassifier) Pipeline.load(folder.resolve("pipeline").toString()).getStages()[0];
    assertArrayEquals(FEATURES, again.getFeaturesCols());
    assertArrayEquals(new int[] {64, 32}, again.getLayers());
  }

  @Test
  void thePartitioningDoesNotShow() {
    CaffeClassificationModel other = classifier().setLabelCol("answer").setMaxEpochs(1)
        .fit(train.repartition(7).coalesce(5));
    assertEquals(answers.caffeModel().getNet(), other.caffeModel().getNet());
    assertArrayEquals(answers.caffeModel().weights(), other.caffeModel().weights());
  }

  /** A column with hidden layers of its own, whose embedding ends as posterior means. */
  @Test
  void posteriorMeansDependNeitherOnThePartitioningNorOnTheEngine() {
    Dataset<Row> places = spark.range(5200).selectExpr("id", "concat('place ', id % 100) place",
        "double(pmod(hash(id), 10) < if(id % 3 = 0, 8, 2)) label");
    CaffeClassifier classifier = new CaffeClassifier().setFeaturesCols("place").setIdCol("id")
        .setNumWorkers(2).setMaxEpochs(2).setSyncMode("average").setSyncPeriod(5);
    CaffeModel model = classifier.fit(places).caffeModel();
    assertTrue(model.getNet().contains("posterior {"), model.getNet());
    CaffeModel elsewhere = classifier.fit(places.repartition(7)).caffeModel();
    assertArrayEquals(model.weights(), elsewhere.weights());
    CaffeModel rounds = classifier.setEngine("rounds").fit(places).caffeModel();
    assertArrayEquals(model.weights(), rounds.weights());
  }

  @Test
  void textsAreClassesAndThresholdsMoveTheirBorder() {
    assertArrayEquals(new String[] {"no", "yes"}, answers.labels());
    assertEquals("CaffeClassificationModel: uid=" + answers.uid() + ", numClasses=2", answers.toString());
    Row first = answers.transform(heldOut).select("prediction", "predictedLabel").first();
    assertEquals(first.getDouble(0) == 1 ? "yes" : "no", first.getString(1));
    CaffeClassificationModel always = answers.copy(ParamMap.empty()).setThresholds(1, 0)
        .setRawPredictionCol("");
    assertEquals(List.of("yes"), always.transform(heldOut).select("predictedLabel").distinct()
        .collectAsList().stream().map(row -> row.getString(0)).toList());
    assertTrue(assertThrows(IllegalArgumentException.class,
        () -> answers.copy(ParamMap.empty()).setThresholds(1).transform(heldOut)).getMessage()
        .contains("one for each of no, yes"));
    String before = assertThrows(IllegalArgumentException.class, () -> classifier()
        .setLabelCol("answer").setThresholds(1, 1, 1).setMaxEpochs(10_000_000).fit(train)).getMessage();
    assertTrue(before.contains("one for each of no, yes"), before);
    assertTrue(assertThrows(IllegalArgumentException.class,
        () -> new CaffeClassifier().setThresholds(1, Double.NaN)).getMessage()
        .contains("thresholds has NaN: set each to 0 or more"));
    assertTrue(assertThrows(IllegalArgumentException.class,
        () -> new CaffeClassifier().setLayers(8, 0)).getMessage()
        .contains("layers has 0: set each to 1 or more"));
  }

  @Test
  void vectorsTellTheirLengthAndOneClassAtMostHasTheThreshold0() {
    StructType schema = answers.transform(heldOut).schema();
    for (String name : List.of("rawPrediction", "probability")) {
      assertEquals(2, AttributeGroup.fromStructField(schema.apply(name)).size(), name);
    }
    String told = assertThrows(IllegalArgumentException.class, () -> answers.copy(ParamMap.empty())
        .setThresholds(0, 0).transform(heldOut)).getMessage();
    assertTrue(told.contains("more than one 0"), told);
  }

  /** Spark gives up code for a whole stage of so many columns. */
  @BothLines
  @Test
  void wideTablesAreScored() {
    Dataset<Row> wide = heldOut.select(Stream.concat(Stream.of(functions.col("*")),
        IntStream.range(0, 300).mapToObj(i -> functions.lit(i).alias("more" + i))).toArray(Column[]::new));
    assertEquals(answers.transform(heldOut).select("probability").collectAsList(),
        answers.transform(wide).select("id", "probability", "more299").drop("id", "more299")
            .collectAsList());
    assertEquals(
        answers.transform(heldOut).select("id", "probability").collectAsList(),
        answers.transform(wide).collectAsList().stream()
            .map(row -> RowFactory.create(row.<Object>getAs("id"), row.<Object>getAs("probability")))
            .toList());
  }

  @Test
  void whatTellsThePartsOfACrossValidationIsNoFeature() {
    Dataset<Row> part = train.select("age", "buys", "id")
        .withColumn("CrossValidator_9c12296a1c22_rand", functions.rand(1));
    CaffeClassifier classifier = new CaffeClassifier().setLabelCol("buys").setIdCol("id")
        .setNumWorkers(2).setMaxEpochs(1);
    String net = classifier.fit(part).caffeModel().getNet();
    assertTrue(net.contains("\"age\"") && !net.contains("_rand"), net);
  }

  @Test
  void whatSettingsTellIsSaidBeforeTheTableIsRead() {
    Dataset<Row> unread = train.withColumn("age", functions.expr("raise_error('it is read')").cast("double"));
    String told = assertThrows(PreflightException.class,
        () -> classifier().setNumWorkers(9).fit(unread)).getMessage();
    assertTrue(told.contains("needs 9 tasks at once"), told);
    told = assertThrows(PreflightException.class,
        () -> classifier().setCheckpointDir("/proc/nothing").fit(unread)).getMessage();
    assertTrue(told.contains("checkpoints cannot be written to /proc/nothing"), told);
  }

  @Test
  void rowsWithoutLabelsOrValuesOrWithNewOnesArePredicted() {
    Dataset<Row> odd = heldOut.limit(4).drop("buys", "answer", "paid").selectExpr("id",
        "cast(null as double) age", "if(id % 2 = 0, 'a city of nowhere', null) city", "visits", "since",
        "cast(null as timestamp) seen", "taste");
    List<Row> rows = answers.transform(odd).collectAsList();
    assertEquals(4, rows.size());
    for (Row row : rows) assertTrue(Double.isFinite(row.<Vector>getAs("probability").apply(1)));
    assertTrue(assertThrows(PreflightException.class, () -> answers.transform(odd.drop("city")))
        .getMessage().contains("no column 'city'"));
  }

  @Test
  void aRegressorOfTwoMembersLearnsTheUnitsOfItsLabel() {
    CaffeRegressor regressor = new CaffeRegressor().setFeaturesCols("city", "visits", "taste")
        .setLabelCol("paid").setIdCol("id").setNumWorkers(2).setBatchSize(64).setMaxEpochs(12)
        .setMembers(2);
    CaffeRegressionModel model = regressor.setValidationIndicatorCol("is.held")
        .fit(train.selectExpr("*", "id % 10 = 0 `is.held`"));
    assertEquals(1800, model.summary().rowsGiven());
    assertTrue(model.caffeModel().events().contains("\"event\":\"test\""), "tested once an epoch");
    assertTrue(model.caffeModel().getNet().contains("member2/score"));
    Dataset<Row> out = model.transform(heldOut);
    double error = new RegressionEvaluator().setLabelCol("paid").evaluate(out);
    assertTrue(error < 5, () -> "" + error);  // they vary by 38
  }

  @BothLines
  @Test
  void aVectorAloneAndCrossValidation() {
    CaffeClassifier linear = new CaffeClassifier().setFeaturesCol("taste").setLabelCol("side")
        .setNumWorkers(1).setBatchSize(64).setMaxIter(20).setBaseLr(0.03);
    Dataset<Row> sides = Visitors.table(spark, 0, 600).selectExpr(
        "taste", "if(paid - 10 * visits > 115, 1.0, 0.0) side");  // a decimal
    ParamMap[] grid = new ParamGridBuilder()
        .addGrid(linear.layers(), Visitors.list(new int[] {}, new int[] {8, 4})).build();
    CrossValidatorModel best = new CrossValidator().setEstimator(linear).setEstimatorParamMaps(grid)
        .setEvaluator(new BinaryClassificationEvaluator().setLabelCol("side")).setNumFolds(2)
        .setSeed(1).setParallelism(2).fit(sides);
    CaffeClassificationModel model = (CaffeClassificationModel) best.bestModel();
    int at = best.avgMetrics()[0] >= best.avgMetrics()[1] ? 0 : 1;
    assertEquals(at == 1, model.caffeModel().getNet().contains("hidden2"));
    assertTrue(best.avgMetrics()[at] > 0.8, () -> Arrays.toString(best.avgMetrics()));
  }

  @Test
  void whatCannotBeLearnedIsRefusedByName() {
    assertTrue(refusal(classifier().setWeightCol("visits")).contains("'visits' is the weight"));
    assertTrue(refusal(classifier().setFeaturesCols("age", "citi")).contains("did you mean 'city'"));
    assertTrue(refusal(classifier().setFeaturesCols("age", "buys")).contains("'buys' is the label"));
    assertTrue(refusal(classifier().setCategoricalCols("visit")).contains("did you mean 'visits'"));
    assertTrue(refusal(classifier().setFeaturesCols("age", "raw"))
        .contains("column 'raw' is of type map"));
    assertTrue(assertThrows(CafetiereException.class, () -> classifier()
        .setFeaturesCols("age", "file").fit(train.selectExpr("*", "binary(city) file")))
        .getMessage().contains("are not a JPEG, PNG or WebP image"));
    assertTrue(refusal(classifier().setLabelCol("seen")).contains("the label 'seen' is of type"));
    assertTrue(assertThrows(IllegalArgumentException.class, () -> classifier().setDropout(1))
        .getMessage().contains("dropout is 1.0: set it to a number from 0.0 to 0.999"));
    Exception missing = assertThrows(Exception.class,
        () -> classifier().fit(train.selectExpr("*", "nullif(buys, 1.0) gone").drop("buys")
            .withColumnRenamed("gone", "buys")));
    assertTrue(missing.getMessage().contains("the label is missing"), missing::toString);
  }

  /** A text that Python, too, finds among the categories of the model. */
  @Test
  void datesAndTimesAreCategoriesOnlyAsText() {
    String told = refusal(
        classifier().setFeaturesCols("since", "seen").setCategoricalCols("since", "seen"));
    for (String column : List.of("'since', which is of type date", "'seen', which is of type timestamp")) {
      assertTrue(told.contains("categoricalCols names " + column + ": cast it to text"), told);
    }
  }

  @Test
  void outputsHaveNamesThatNoOtherColumnHas() {
    Dataset<Row> taken = heldOut.withColumn("PREDICTION", functions.lit(1));
    String told = assertThrows(IllegalArgumentException.class, () -> answers.transform(taken)).getMessage();
    assertTrue(told.startsWith("the table has a column 'PREDICTION' already, which predictionCol would add as"
        + " 'prediction'"), told);
    assertThrows(IllegalArgumentException.class, () -> classifier().transformSchema(taken.schema()));
    spark.conf().set("spark.sql.caseSensitive", true);
    try {
      assertEquals(heldOut.count(), answers.transform(taken).select("PREDICTION", "prediction").count());
    } finally {
      spark.conf().unset("spark.sql.caseSensitive");
    }
    told = assertThrows(IllegalArgumentException.class, () -> answers.copy(ParamMap.empty())
        .setPredictionCol("p").setProbabilityCol("P").transform(heldOut)).getMessage();
    assertEquals("probabilityCol and predictionCol both name the column 'p': set one of them to another name",
        told);
    told = assertThrows(IllegalArgumentException.class, () -> answers.caffeModel()
        .setOutputCols("score", "score").transform(heldOut)).getMessage();
    assertEquals("outputCols names 'score' twice: take out one", told);
  }

  @Test
  void labelsThatAreAllNumbersArePredictedAsSuch() {
    assertArrayEquals(new double[] {-1, 0.5, 2e3}, numbers("-1", "0.5", "2e3"));
    assertArrayEquals(new double[] {0, 1}, numbers("1d", "2d"));
    assertArrayEquals(new double[] {0, 1}, numbers("1", "NaN"));
  }

  /** Two classes with one prediction would be one class to Spark's evaluators. */
  @Test
  void labelsThatAreNoDistinctDoublesArePredictedAsPlaces() {
    assertArrayEquals(new double[] {0, 1}, numbers("01", "1"));
    assertArrayEquals(new double[] {0, 1, 2}, numbers("1.1", "1.10", "2"));
    assertArrayEquals(new double[] {0, 1}, numbers("-0", "0"));
    assertArrayEquals(new double[] {0, 1}, numbers("1", "1e400"));
    Dataset<Row> large = train.limit(60).selectExpr("age", "9007199254740992 + id % 2 label");
    String told = assertThrows(PreflightException.class, () -> new CaffeClassifier().setNumWorkers(1)
        .setMaxEpochs(10_000_000).fit(large)).getMessage();
    assertTrue(told.contains("the label 'label' has the classes 9007199254740992 and 9007199254740993, which"
        + " are the same double"), told);
    CaffeClassificationModel ofTexts = new CaffeClassifier().setNumWorkers(1).setMaxEpochs(1)
        .fit(large.withColumn("label", functions.expr("string(label)")));
    assertEquals(60, ofTexts.transform(large)
        .filter("predictedLabel = string(9007199254740992 + bigint(prediction))").count());
  }

  private static double[] numbers(String... labels) {
    return ((ClassColumns) ClassColumns.of(classifier(), List.of(labels))).numbers();
  }

  private static String refusal(CaffeClassifier classifier) {
    return assertThrows(PreflightException.class,
        () -> classifier.fit(train.selectExpr("*", "map(city, age) raw"))).getMessage();
  }

  /** Pictures whose left or right half is bright, as Spark's images, as files and as pixels of decimals. */
  private static Dataset<Row> pictures() {
    return spark.range(0, 120, 1, 3).selectExpr("id", "id % 7 number", "if(id % 2 = 0, 'left', 'right') side",
        "unhex(repeat(if(id % 2 = 0, 'FFF0FFE000100020', '00100020FFF0FFE0'), 8)) data")
        .selectExpr("id", "number", "side",
            "named_struct('origin', '', 'height', 8, 'width', 8, 'nChannels', 1, 'mode', 0, 'data', data) photo",
            "concat(cast('P5\n8 8\n255\n' as binary), data) file",
            "array(cast(id % 2 as decimal(9, 2)), cast(number as decimal(9, 2))) decimals");
  }

  @BothLines
  @Test
  void picturesAreFeatures(@TempDir Path folder) throws Exception {
    Dataset<Row> pictures = pictures().cache();
    CaffeClassifier classifier = new CaffeClassifier().setFeaturesCols("photo", "number").setLabelCol("side")
        .setIdCol("id").setNumWorkers(2).setBatchSize(16).setMaxEpochs(10);
    CaffeClassificationModel model = classifier.fit(pictures);
    Dataset<Row> out = model.transform(pictures);
    assertEquals(120, out.filter("predictedLabel = side").count());
    assertArrayEquals(model.caffeModel().weights(),
        classifier.fit(pictures.repartition(5)).caffeModel().weights());
    model.write().save(folder.resolve("model").toString());
    CaffeClassificationModel loaded = CaffeClassificationModel.load(folder.resolve("model").toString());
    Dataset<Row> files = pictures.drop("photo", "side").withColumnRenamed("file", "photo");
    assertEquals(out.select("id", "probability").orderBy("id").collectAsList(),
        loaded.transform(files).select("id", "probability").orderBy("id").collectAsList());
    assertEquals(1, loaded.transform(files.limit(1).selectExpr("id", "number", "cast(null as binary) photo"))
        .filter("prediction is not null").count());
    String told = assertThrows(Exception.class, () -> loaded.transform(
        files.selectExpr("id", "number", "cast('no' as binary) photo")).collectAsList()).getMessage();
    assertTrue(told.contains("column \"photo\""), told);
    assertTrue(classifier.explain(pictures, false).parameters() > 2000);
  }

  @Test
  void picturesOfSeveralSizesNeedOne() {
    Dataset<Row> several = pictures().selectExpr("id", "side", "if(id = 77, concat(cast('P5\n2 1\n255\n' as"
        + " binary), unhex('FF00')), file) file");
    CaffeClassifier classifier = new CaffeClassifier().setLabelCol("side").setIdCol("id").setNumWorkers(2)
        .setBatchSize(16).setMaxEpochs(1);
    String told = assertThrows(Exception.class, () -> classifier.fit(several)).getMessage();
    assertTrue(told.contains("column \"file\": images of several sizes, from 1 x 2 to 8 x 8"), told);
    assertEquals(120, classifier.setImageSize(4, 4).fit(several).transform(several).count());
    assertTrue(assertThrows(PreflightException.class, () -> classifier.setImageSize(4).fit(several))
        .getMessage().contains("imageSize is [4]"));
    assertTrue(assertThrows(PreflightException.class, () -> classifier.setImageSize(4, 4).fit(several.drop("file")
        .withColumn("x", functions.lit(1.5)))).getMessage().contains("imageSize is for columns of images"));
    String bad = assertThrows(Exception.class, () -> classifier.setImageSize(4, 4).fit(
        several.selectExpr("id", "side", "if(id = 78, cast('no' as binary), file) file"))).getMessage();
    assertTrue(bad.contains("column \"file\", id 78"), bad);
  }

  @BothLines
  @Test
  void arraysOfDecimalsAreNumbers() {
    Dataset<Row> table = pictures().cache();
    CaffeClassifier classifier = new CaffeClassifier().setLabelCol("side").setIdCol("id").setNumWorkers(2)
        .setBatchSize(16).setMaxEpochs(20).setFeaturesCols("decimals");
    CaffeClassificationModel model = classifier.fit(table);
    assertEquals(120, model.transform(table).filter("predictedLabel = side").count());
    assertArrayEquals(model.caffeModel().weights(), classifier.fit(
        table.withColumn("decimals", functions.expr("cast(decimals as array<double>)"))).caffeModel().weights());
  }
}
