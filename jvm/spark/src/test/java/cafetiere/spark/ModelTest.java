// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.spark.ml.Pipeline;
import org.apache.spark.ml.PipelineModel;
import org.apache.spark.ml.PipelineStage;
import org.apache.spark.ml.feature.SQLTransformer;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.functions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A model adds its outputs to every row, in order, and survives saving. */
@BothLines
class ModelTest {
  private static final int ROWS = 203;

  private static Dataset<Row> points;
  private static CaffeModel model;

  @TempDir Path folder;

  @BeforeAll
  static void train() {
    points = TestNets.points(TestCluster.session(), ROWS).repartition(3).sort("id").cache();
    model = TestNets.model(points);
  }

  @Test
  void everyRowComesOutInOrder() {
    List<Row> rows = model.transform(points).collectAsList();
    assertEquals(ROWS, rows.size());
    for (int i = 0; i < ROWS; i++) assertEquals(i, rows.get(i).getLong(0));
    assertEquals(List.of("id", "features", "label", "score", "prediction"),
        List.of(rows.get(0).schema().fieldNames()));
    long right = rows.stream().filter(row -> row.getInt(2) == row.getDouble(4)).count();
    assertTrue(right > 0.9 * ROWS, right + " of " + ROWS + " are right");
  }

  /** As after a join of two tables with an id. */
  @Test
  void aColumnWhoseNameIsThereTwiceIsRefused() {
    Dataset<Row> doubled = points.select(functions.col("features"), functions.col("id"),
        functions.lit(1L << 40).as("id"));
    CaffeModel named = model.copy(model.extractParamMap()).setIdCol("id");
    String message = assertThrows(PreflightException.class,
        () -> named.transform(doubled).collectAsList()).getMessage();
    assertTrue(message.contains("2 columns named 'id': rename or drop all but one"), message);
    Dataset<Row> unread = points.select("features", "label", "label");
    assertEquals(ROWS, model.transform(unread).count());
  }

  @Test
  void theBatchDoesNotShowInTheOutputs() {
    List<Row> expected = scores(model);
    for (int batch : new int[] {1, 7, 64}) {
      assertEquals(expected, scores(model.copy(model.extractParamMap()).setBatchSize(batch)));
    }
  }

  @Test
  void aModelIsAppliedInTheOtherPrecisionWhereAsked() {
    List<Row> expected = scores(model);
    CaffeModel narrow = model.copy(model.extractParamMap()).setPredictionPrecision("bf16");
    List<Row> narrowed = scores(narrow);
    assertNotEquals(expected, narrowed);
    for (int i = 0; i < ROWS; i++) {
      List<Float> wide = expected.get(i).getList(1), near = narrowed.get(i).getList(1);
      for (int o = 0; o < wide.size(); o++) {
        assertEquals(wide.get(o), near.get(o), 0.05f * (1 + Math.abs(wide.get(o))), "row " + i);
      }
    }
    assertEquals(narrowed, scores(narrow.setBatchSize(7)));
    assertThrows(IllegalArgumentException.class, () -> model.copy(model.extractParamMap())
        .setPredictionPrecision("half"));
  }

  @Test
  void innerBlobsComeOutAsColumns() {
    CaffeModel inner = model.copy(model.extractParamMap())
        .setOutputCols("hidden", "score").setPredictionCol("");
    Dataset<Row> rows = inner.transform(points);
    assertEquals(List.of("id", "features", "label", "hidden", "score"), List.of(rows.columns()));
    assertEquals(ROWS, rows.filter(functions.size(functions.col("hidden")).equalTo(5)).count());
    assertEquals(inner.transformSchema(points.schema()), rows.schema());
  }

  @Test
  void anOutputThatIsNoBlobIsToldWithoutAJob() {
    CaffeModel misspelt = model.copy(model.extractParamMap()).setOutputCols("hiden");
    String told = assertThrows(PreflightException.class, () -> misspelt.transform(points)).getMessage();
    assertTrue(told.startsWith("outputCols names 'hiden', which is no blob of the net: did you mean"
        + " 'hidden'? It has: "), told);
  }

  @Test
  void aTableWithoutLabelsIsPredicted() {
    assertEquals(scores(model),
        model.transform(points.drop("label")).select("id", "score").collectAsList());
  }

  @Test
  void anEmptyTableGivesAnEmptyTable() {
    assertEquals(0, model.transform(points.filter("id < 0")).count());
  }

  @Test
  void aSavedModelIsTheSame() throws Exception {
    String path = folder.resolve("model").toString();
    model.write().save(path);
    CaffeModel loaded = CaffeModel.load(path);
    assertEquals(model.uid(), loaded.uid());
    assertArrayEquals(model.weights(), loaded.weights());
    assertArrayEquals(model.solverState(), loaded.solverState());
    assertEquals(model.result(), loaded.result());
    assertEquals(scores(model), scores(loaded));
  }

  @Test
  void columnsThatAreBoundStayBound() throws Exception {
    Dataset<Row> renamed = points.withColumnRenamed("features", "pixels");
    CaffeModel bound = CaffeModel.ofWeights(model.weights(), Map.of("data", "pixels"))
        .setNet(TestNets.CLASSIFIER).setOutputCols("score");
    List<Row> scores = scores(bound, renamed);
    assertEquals(scores(model), scores);
    assertEquals(scores, scores(bound.copy(ParamMap.empty()), renamed));
    String path = folder.resolve("bound").toString();
    bound.write().save(path);
    assertEquals(scores, scores(CaffeModel.load(path), renamed));
    assertNotEquals(bound.uid(), CaffeModel.ofWeights(model.weights(), Map.of()).uid());
  }

  @Test
  void aPipelineCarriesAModel() throws Exception {
    String path = folder.resolve("pipeline").toString();
    PipelineModel pipeline = new Pipeline().setStages(new PipelineStage[] {model}).fit(points);
    pipeline.write().save(path);
    assertEquals(scores(model),
        PipelineModel.load(path).transform(points).select("id", "score").collectAsList());
  }

  @Test
  void aColumnThatIsThereAlreadyIsNotReplaced() {
    Dataset<Row> table = points.withColumn("prediction", functions.lit(0));
    String message = assertThrows(
        IllegalArgumentException.class, () -> model.transform(table)).getMessage();
    assertTrue(message.contains("'prediction'") && message.contains("predictionCol"), message);
  }

  private static CaffeEstimator estimator() {
    return new CaffeEstimator().setSolver(TestNets.SOLVER).setNet(TestNets.CLASSIFIER);
  }

  /** Pipeline.fit asks all its stages before it trains the first. */
  @Test
  void theColumnsOfAModelAreKnownBeforeItIsTrained() {
    assertEquals(model.transformSchema(points.schema()), estimator().transformSchema(points.schema()));
    SQLTransformer later = new SQLTransformer().setStatement("SELECT score[0] AS first FROM __THIS__");
    Pipeline pipeline = new Pipeline().setStages(new PipelineStage[] {estimator(), later});
    assertArrayEquals(new String[] {"first"}, pipeline.transformSchema(points.schema()).fieldNames());
  }

  @Test
  void whatAModelCouldNotAddIsRefusedBeforeTheTraining() {
    Dataset<Row> table = points.withColumn("score", functions.lit(0));
    String message = assertThrows(
        IllegalArgumentException.class, () -> estimator().fit(table)).getMessage();
    assertTrue(message.contains("'score'") && message.contains("outputCols"), message);
    String misspelt = assertThrows(PreflightException.class,
        () -> estimator().setOutputCols("scores").fit(points)).getMessage();
    assertTrue(misspelt.contains("'scores', which is no blob of the net: did you mean 'score'?"),
        misspelt);
  }

  private static List<Row> scores(CaffeModel model) {
    return scores(model, points);
  }

  private static List<Row> scores(CaffeModel model, Dataset<Row> table) {
    return model.transform(table).select("id", "score").collectAsList();
  }
}
