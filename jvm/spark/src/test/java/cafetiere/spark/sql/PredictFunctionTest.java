// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sql;

import static org.apache.spark.sql.functions.expr;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.BothLines;
import cafetiere.spark.CaffeModel;
import cafetiere.spark.TestCluster;
import cafetiere.spark.TestNets;
import cafetiere.spark.ml.CaffeRegressor;
import cafetiere.spark.saved.ModelFolder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.ml.functions;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** SQL scores rows as transform does, by the catalog's function and by the one of the session. */
@BothLines
class PredictFunctionTest {
  private static final int ROWS = 1_000;

  @TempDir static Path folder;
  private static SparkSession spark;
  private static String path;
  private static List<Row> expected;

  @BeforeAll
  static void save() throws Exception {
    spark = TestCluster.session();
    spark.conf().set("spark.sql.catalog.cafetiere", Functions.class.getName());
    Dataset<Row> points = TestNets.points(spark, ROWS).cache();
    CaffeModel model = TestNets.model(points.limit(200));
    path = folder.resolve("model").toString();
    model.write().save(path);
    points.withColumn("vector", functions.array_to_vector(points.col("features")))
        .createOrReplaceTempView("points");
    expected = model.setBatchSize(1).transform(points).select("id", "score").orderBy("id")
        .collectAsList();
  }

  @Test
  void theScoresAreThoseOfTransform() {
    for (String function : List.of("cafetiere.predict", "cafetiere_predict")) {
      for (String features : List.of("features", "cast(features as array<double>)", "vector")) {
        assertEquals(expected, spark.sql("SELECT id, " + function + "('" + path + "', " + features
            + ") AS score FROM points ORDER BY id").collectAsList(), function + " of " + features);
      }
    }
  }

  @Test
  void anotherBlobMayBeNamed() {
    List<Row> rows = query("size(cafetiere.predict('" + path + "', features, 'hidden'))", "id < 3");
    rows.forEach(row -> assertEquals(5, row.getInt(0)));
  }

  @Test
  void itFiltersAndGroups() {
    long right = expected.stream().filter(row -> row.<Float>getList(1).get(1) > 0).count();
    assertEquals(right, spark.sql("SELECT count(*) FROM points WHERE cafetiere_predict('" + path
        + "', features)[1] > 0").head().getLong(0));
    assertNotEquals(0, right);
  }

  /** Spark takes calls for equal if their functions are. */
  @Test
  void aCallMayBeGroupedByAndIsComputedOnce() {
    for (String features : List.of("features", "vector")) {
      String call = "cafetiere.predict('" + path + "', " + features + ")";
      List<Row> groups = spark.sql("SELECT " + call + "[1] > 0 AS right, count(*) FROM points GROUP BY "
          + call + "[1] > 0 ORDER BY right").collectAsList();
      long right = expected.stream().filter(row -> row.<Float>getList(1).get(1) > 0).count();
      assertEquals(List.of(ROWS - right, right),
          groups.stream().map(group -> group.getLong(1)).toList());
      assertEquals(expected.stream().map(row -> row.<Float>getList(1).get(0)).toList(),
          spark.sql("SELECT s[0] FROM (SELECT id, " + call + " AS s FROM points GROUP BY id, " + call
              + ") ORDER BY id").collectAsList().stream().map(row -> row.getFloat(0)).toList());
    }
    String call = "cafetiere.predict('" + path + "', features)";
    List<Row> both = query(call + "[0], " + call + "[1]", "true");
    assertEquals(expected.stream().map(row -> row.<Float>getList(1)).toList(),
        both.stream().map(row -> List.of(row.getFloat(0), row.getFloat(1))).toList());
  }

  @Test
  void functionsAreEqualWhereTheyTakeTheSame() {
    assertEquals(new Predict(true, false, null), new Predict(true, false, null));
    assertNotEquals(new Predict(true, false, null), new Predict(false, false, null));
    assertNotEquals(new Predict(true, false, null), new Predict(true, true, null));
    StructType row = new StructType().add("age", "double");
    assertEquals(new PredictRow(row, false, null), new PredictRow(row, false, null));
    assertEquals(
        new PredictRow(row, true, null).hashCode(), new PredictRow(row, true, null).hashCode());
    assertNotEquals(new PredictRow(row, false, null), new PredictRow(row.add("city", "string"), false, null));
  }

  @Test
  void anArgumentThatIsNullGivesNull() {
    assertTrue(query("cafetiere_predict('" + path + "', cast(NULL as array<float>))", "id = 1")
        .get(0).isNullAt(0));
    for (String function : List.of("cafetiere.predict", "cafetiere_predict")) {
      for (String arguments : List.of("NULL, features", "'" + path + "', NULL", "NULL, NULL, NULL",
          "'" + path + "', features, NULL")) {
        assertTrue(query(function + "(" + arguments + ")", "id = 1").get(0).isNullAt(0), arguments);
      }
    }
    assertTells("NULL at element 1",
        "cafetiere_predict('" + path + "', array(1f, if(id >= 0, NULL, 2f), 3f))");
  }

  @Test
  void argumentsMayBeNamed() {
    List<Row> scores = query("cafetiere_predict('" + path + "', features, 'hidden')", "id < 3");
    assertEquals(scores, query("cafetiere_predict('" + path
        + "', output => 'hidden', features => features)", "id < 3"));
    assertEquals(scores, query("cafetiere_predict(FEATURES => features, output => 'hidden', path => '"
        + path + "')", "id < 3"));
    assertRefused("predict has no argument input",
        "cafetiere_predict('" + path + "', input => features)");
    assertRefused("predict is given path twice",
        "cafetiere_predict('" + path + "', path => 'there', features => features)");
    assertRefused("predict takes the path", "cafetiere_predict(features => features, output => 'score')");
  }

  /** By Spark's analysis, before anything runs. */
  private static void assertRefused(String words, String expression) {
    String told = assertThrows(AnalysisException.class, () -> query(expression, "true")).getMessage();
    assertTrue(told.contains(words), told);
  }

  @Test
  void itIsDescribed() {
    String told = spark.sql("DESCRIBE FUNCTION cafetiere_predict").collectAsList().toString();
    assertTrue(told.contains("Usage: cafetiere_predict(path, features [, output]): what a saved"), told);
  }

  @Test
  void aNullInAnArrayOfARowIsRefusedToo() throws Exception {
    String table = folder.resolve("table").toString();
    new CaffeRegressor().setFeaturesCols("xs").setLabelCol("y").setNumWorkers(1).setMaxEpochs(1)
        .fit(spark.range(20).selectExpr("array(id + 0.5D, 2D) xs", "id y")).write().save(table);
    String score = "cafetiere.predict('" + table + "', struct(array(1D, if(id > 0, NULL, 2D)) AS xs))";
    assertEquals(1, query(score, "id = 0").size());
    assertTells("NULL at element 1", score);
  }

  @Test
  void whatCannotBeScoredIsTold() throws Exception {
    assertTells("there is no saved CaffeModel at /nowhere",
        "cafetiere_predict('/nowhere', features)");
    String keyed = folder.resolve("keyed").toString();
    Files.createDirectories(Path.of(ModelFolder.netsOfKeys(keyed)));
    assertTells("has a net for each key", "cafetiere_predict('" + keyed + "', features)");
    String pipeline = folder.resolve("pipeline").toString();
    Files.createDirectories(Path.of(pipeline, "stages"));
    assertTells("is a saved pipeline: give the path of its model",
        "cafetiere.predict('" + pipeline + "', features)");
    assertRefused("of type string", "cafetiere.predict('" + path + "', 'text')");
    assertRefused("of type string", "cafetiere_predict('" + path + "', 'text')");
    assertRefused("predict takes the path", "cafetiere_predict('" + path + "')");
  }

  @Test
  void aModelThatIsSavedInItsPlaceIsTaken() throws Exception {
    String changing = folder.resolve("changing").toString();
    CaffeModel model = CaffeModel.load(path);
    model.write().save(changing);
    String score = "cafetiere.predict('" + changing + "', features)";
    List<Row> before = query(score, "id < 10");
    Dataset<Row> turned = TestNets.points(spark, 50).withColumn("label", expr("1 - label"));
    TestNets.model(turned).write().overwrite().save(changing);
    assertNotEquals(before, query(score, "id < 10"));
  }

  @Test
  void aPathIsNoPattern() throws Exception {
    String odd = folder.resolve("run[1]").toString();
    CaffeModel.load(path).write().save(odd);
    assertEquals(query("cafetiere.predict('" + path + "', features)", "id < 10"),
        query("cafetiere.predict('" + odd + "', features)", "id < 10"));
  }

  private static List<Row> query(String expression, String where) {
    return spark.sql("SELECT " + expression + " FROM points WHERE " + where + " ORDER BY id")
        .collectAsList();
  }

  private static void assertTells(String words, String expression) {
    Throwable error = assertThrows(Exception.class, () -> query(expression, "id < 3"));
    StringBuilder told = new StringBuilder();
    for (; error != null; error = error.getCause()) told.append(error.getMessage()).append('\n');
    assertTrue(told.toString().contains(words), told.toString());
  }
}
