// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.score.CellType;
import cafetiere.core.score.TableScorer;
import cafetiere.spark.BothLines;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.CaffeModel;
import cafetiere.spark.PreflightException;
import cafetiere.spark.TestCluster;
import cafetiere.spark.sql.Functions;
import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.file.Path;
import java.sql.Date;
import java.sql.Timestamp;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.spark.ml.linalg.Vector;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Rows as they are, with texts, dates and gaps, have the same scores by whichever way they are scored. */
@BothLines
@Timeout(value = 240, unit = TimeUnit.SECONDS)
class DoorsTest {
  private static final int ROWS = 1_000;
  private static final Map<String, CellType> COLUMNS = new LinkedHashMap<>();

  @TempDir static Path folder;
  private static SparkSession spark;
  private static Dataset<Row> table;
  private static CaffeClassificationModel model;
  private static float[][] expected;

  @BeforeAll
  static void train() throws Exception {
    COLUMNS.put("age", CellType.DOUBLE);
    COLUMNS.put("visits", CellType.LONG);
    COLUMNS.put("city", CellType.TEXT);
    COLUMNS.put("born", CellType.DATE);
    COLUMNS.put("seen", CellType.TIMESTAMP);
    COLUMNS.put("member", CellType.BOOLEAN);
    spark = TestCluster.session();
    spark.conf().set("spark.sql.catalog.cafetiere", Functions.class.getName());
    table = spark.range(ROWS).selectExpr("id",
        "if(id % 9 = 0, NULL, id % 71 + 0.25D) AS age",
        "if(id % 11 = 0, NULL, id % 13) AS visits",
        "if(id % 7 = 0, NULL, concat('city \u00e9 ', id % 23)) AS city",
        "if(id % 5 = 0, NULL, date_add(DATE'1990-01-01', CAST(id AS int))) AS born",
        "if(id % 6 = 0, NULL, timestamp_micros(1600000000000000 + id * 3600000123)) AS seen",
        "id % 3 = 0 AS member",
        "CAST(id % 2 AS int) AS label").cache();
    model = new CaffeClassifier().setFeaturesCols(COLUMNS.keySet().toArray(new String[0]))
        .setMaxEpochs(2).setNumWorkers(2).fit(table.filter("id < 400"));
    model.write().overwrite().save(folder.resolve("model").toString());
    expected = new float[ROWS][];
    for (Row row : model.transform(table).select("id", "probability").collectAsList()) {
      double[] values = row.<Vector>getAs(1).toArray();
      expected[(int) row.getLong(0)] = floats(values);
    }
  }

  @Test
  void aStructInSqlHasTheScoresOfTransform() {
    String columns = String.join(", ", COLUMNS.keySet());
    table.createOrReplaceTempView("visitors");
    List<Row> rows = spark.sql("SELECT id, cafetiere.predict('" + folder.resolve("model")
        + "', struct(" + columns + "), 'probability') FROM visitors").collectAsList();
    assertEquals(ROWS, rows.size());
    for (Row row : rows) {
      List<Float> score = row.getList(1);
      float[] values = {score.get(0), score.get(1)};
      assertArrayEquals(expected[(int) row.getLong(0)], values, "row " + row.getLong(0));
    }
    Exception array = assertThrows(Exception.class, () -> spark.sql("SELECT cafetiere.predict('"
        + folder.resolve("model") + "', array(1, 2), 'probability')").collect());
    assertTrue(text(array).contains("is of a table: give predict a struct of its columns, as in struct("),
        text(array));
    Exception unknown = assertThrows(Exception.class, () -> spark.sql("SELECT cafetiere.predict('"
        + folder.resolve("model") + "', struct(id), 'probability') FROM visitors").collect());
    assertTrue(text(unknown).contains("reads no column 'id'"), text(unknown));
    List<String> fewer = COLUMNS.keySet().stream().filter(name -> !name.equals("city")).toList();
    Exception forgotten = assertThrows(Exception.class, () -> spark.sql("SELECT cafetiere.predict('"
        + folder.resolve("model") + "', struct(" + String.join(", ", fewer) + "), 'probability') FROM visitors")
        .collect());
    assertTrue(text(forgotten).contains("there is no column \"city\""), text(forgotten));
  }

  @Test
  void arraysInSqlHaveTheScoresOfTransform() throws Exception {
    Dataset<Row> arrays = spark.range(200).selectExpr("id", "array(id % 7, id % 5) AS longs",
        "array(float(id % 3) / float(7), float(id)) AS floats", "array(decimal(id % 9) / 4) AS decimals",
        "array(concat('word \u00e9 ', id % 6), NULL, 'all') AS words", "int(id % 3 = 0) AS label");
    CaffeClassificationModel learned = new CaffeClassifier().setIdCol("id").setMaxEpochs(1).setNumWorkers(1)
        .setFeaturesCols("longs", "floats", "decimals", "words").fit(arrays);
    String path = folder.resolve("arrays").toString();
    learned.write().overwrite().save(path);
    Dataset<Row> scored = learned.transform(arrays).selectExpr("probability", "cafetiere.predict('" + path
        + "', struct(longs, floats, decimals, words), 'probability')");
    for (Row row : scored.collectAsList()) {
      List<Float> score = row.getList(1);
      assertArrayEquals(floats(row.<Vector>getAs(0).toArray()), new float[] {score.get(0), score.get(1)});
    }
  }

  @Test
  void cellsInAJvmHaveTheScoresOfTransform() {
    byte[] weights = model.caffeModel().weights();
    String net = model.caffeModel().getNet();
    try (TableScorer scorer = new TableScorer(net, weights, COLUMNS, "probability");
        TableScorer further = scorer.share()) {
      for (Row row : table.collectAsList()) {
        int id = (int) row.getLong(0);
        assertArrayEquals(expected[id], scorer.score(cells(row)), "row " + id);
        Map<String, Object> named = new LinkedHashMap<>();
        cells(row).forEach(cell -> named.put(List.copyOf(COLUMNS.keySet()).get(named.size()), cell));
        assertArrayEquals(expected[id], further.score(named), "row " + id + " by names");
      }
      IllegalArgumentException refused = assertThrows(IllegalArgumentException.class,
          () -> scorer.score(Map.of("age", "old")));
      assertTrue(refused.getMessage().contains("'age' is of type DOUBLE"), refused.getMessage());
    }
    Exception unknown = assertThrows(Exception.class,
        () -> new TableScorer(net, weights, Map.of("agee", CellType.DOUBLE), "probability"));
    assertTrue(unknown.getMessage().contains("reads no column 'agee' of a table; it reads age"),
        unknown.getMessage());
    Map<String, CellType> others = new LinkedHashMap<>(COLUMNS);
    others.put("age", CellType.DATE);
    Exception date = assertThrows(Exception.class, () -> new TableScorer(net, weights, others, "probability"));
    assertTrue(date.getMessage().contains("column 'age' is of type DATE, and the net has learned it as a NUMBER"),
        date.getMessage());
  }

  /** A cell cut to the column's bits would have the score of another row. */
  @Test
  void wholeNumbersThatDoNotFitAreRefused() {
    CaffeModel net = model.caffeModel();
    Map<String, CellType> columns = new LinkedHashMap<>(COLUMNS);
    columns.put("visits", CellType.INT);
    try (TableScorer longs = new TableScorer(net.getNet(), net.weights(), COLUMNS, "probability");
        TableScorer ints = new TableScorer(net.getNet(), net.weights(), columns, "probability")) {
      float[] wanted = ints.score(Map.of("visits", 31));
      for (Number same : List.of(31L, 31.0, 31f, (short) 31, (byte) 31, new BigDecimal("31.0"),
          BigInteger.valueOf(31))) {
        assertArrayEquals(wanted, ints.score(Map.of("visits", same)), same.getClass().getName());
        assertArrayEquals(wanted, longs.score(Map.of("visits", same)), same.getClass().getName());
      }
      assertNotHeld(ints, "INT", 4_294_967_327L, 31.9, 0x1p31f, Double.NaN);
      assertNotHeld(longs, "LONG", 31.9f, 0x1p63, Double.NEGATIVE_INFINITY, new BigDecimal("31.9"),
          BigInteger.ONE.shiftLeft(64).add(BigInteger.TEN));
    }
  }

  private static void assertNotHeld(TableScorer scorer, String type, Number... cells) {
    for (Number cell : cells) {
      assertEquals("column 'visits' is of type " + type + ", which does not hold " + cell + ", a "
          + cell.getClass().getName(), assertThrows(IllegalArgumentException.class,
          () -> scorer.score(Map.of("visits", cell))).getMessage());
    }
  }

  /** The engine tells texts of an array apart by a character that one of them may have, too. */
  @Test
  void aTextOfAnArrayStaysOne() throws Exception {
    Dataset<Row> texts = spark.range(60).selectExpr("id", "int(id % 2) label",
        "array('all', if(id % 2 = 0, 'a\u001fb', 'c')) words");
    CaffeClassificationModel learned = new CaffeClassifier().setIdCol("id").setMaxEpochs(1).setNumWorkers(1)
        .setFeaturesCols("words").fit(texts);
    CaffeModel net = learned.caffeModel();
    assertTrue(net.getNet().contains("\"a b\""), net.getNet());
    Row first = learned.transform(texts).filter("id = 0").first();
    try (TableScorer scorer = new TableScorer(
        net.getNet(), net.weights(), Map.of("words", CellType.TEXTS), "probability")) {
      assertArrayEquals(floats(first.<Vector>getAs("probability").toArray()),
          scorer.score(Map.of("words", List.of("all", "a\u001fb"))));
    }
  }

  /** What tables have for no time at all is further away than a long counts in nanoseconds. */
  @Test
  void timesOfAllYearsHaveTheScoresOfTransform() {
    CaffeModel net = model.caffeModel();
    try (TableScorer scorer = new TableScorer(net.getNet(), net.weights(), COLUMNS, "probability")) {
      for (String day : List.of("0001-01-01", "9999-12-31")) {
        Instant seen = Instant.parse(day + "T23:59:58.123456Z");
        Dataset<Row> row = table.filter("id = 1").withColumn("seen", functions.expr(
            "timestamp_micros(" + seen.getEpochSecond() + "000000 + 123456)"));
        float[] wanted = floats(model.transform(row).first().<Vector>getAs("probability").toArray());
        List<Object> cells = cells(row.drop("seen").withColumn("seen", functions.lit(null)).first());
        cells.set(List.copyOf(COLUMNS.keySet()).indexOf("seen"), seen);
        assertArrayEquals(wanted, scorer.score(cells), day);
        List<Float> inSql = row.selectExpr("cafetiere.predict('" + folder.resolve("model")
            + "', struct(" + String.join(", ", COLUMNS.keySet()) + "), 'probability')").first().getList(0);
        assertEquals(List.of(wanted[0], wanted[1]), inSql, day);
      }
    }
  }

  /** Days, seconds and microseconds are the same to the engine: scores would be wrong without an error. */
  @Test
  void aColumnOfAnotherTypeThanInTrainingIsRefused() {
    assertRefused("seen", "date(seen)", "is of type date, and the net has learned it as a timestamp");
    assertRefused("seen", "unix_micros(seen)",
        "is of type bigint, and the net has learned it as a timestamp");
    assertRefused("seen", "string(seen)", "is of type string, and the net has learned it as a timestamp");
    assertRefused("born", "timestamp(born)", "is of type timestamp, and the net has learned it as a date");
    assertRefused("born", "unix_date(born)", "is of type int, and the net has learned it as a date");
    assertRefused("age", "date(seen)", "is of type date, and the net has learned it as a number");
    assertRefused("visits", "seen", "is of type timestamp, and the net has learned it as a number");
    assertRefused("member", "string(member)", "is of type string, and the net has learned it as a number");
  }

  private static void assertRefused(String column, String as, String why) {
    Dataset<Row> other = table.withColumn(column, functions.expr(as));
    String told = assertThrows(PreflightException.class, () -> model.transform(other)).getMessage();
    assertTrue(told.contains("column '" + column + "' " + why), told);
    assertThrows(PreflightException.class, () -> model.transformSchema(other.schema()));
    CaffeEstimator again = new CaffeEstimator().setNet(model.caffeModel().getNet())
        .setSolver("base_lr: 0.1 lr_policy: 'fixed' max_iter: 1").setPredictionCol("");
    told = assertThrows(PreflightException.class, () -> again.transformSchema(other.schema())).getMessage();
    assertTrue(told.contains("column '" + column + "' " + why), told);
    String inSql = text(assertThrows(Exception.class, () -> other.selectExpr("cafetiere.predict('"
        + folder.resolve("model") + "', struct(" + String.join(", ", COLUMNS.keySet())
        + "), 'probability')").collectAsList()));
    assertTrue(inSql.contains("column '" + column + "' " + why), inSql);
  }

  @Test
  void numbersOfOtherTypesHaveTheSameScores() {
    Dataset<Row> others = table.selectExpr("id", "cast(age as decimal(9, 2)) age", "float(visits) visits",
        "city", "born", "cast(seen as timestamp_ntz) seen", "int(member) member");
    assertEquals(ROWS, model.transform(others).count());
    assertEquals(withoutTime(table), withoutTime(others));
  }

  /** The zone of the session decides which time one without a zone is. */
  private static List<Row> withoutTime(Dataset<Row> rows) {
    return model.transform(rows.withColumn("seen", functions.lit(null).cast("timestamp")))
        .select("id", "probability").orderBy("id").collectAsList();
  }

  @Test
  void cellsAreScoredWithoutAllocation() {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    CaffeModel net = model.caffeModel();
    List<Object> row = cells(table.withColumn("city", functions.lit("Oslo")).filter("id = 1").first());
    try (TableScorer scorer = new TableScorer(net.getNet(), net.weights(), COLUMNS, "probability")) {
      float[] score = new float[scorer.size()];
      for (int i = 0; i < 20_000; i++) scorer.score(row, score);
      long me = Thread.currentThread().getId();
      long before = threads.getThreadAllocatedBytes(me);
      for (int i = 0; i < 200_000; i++) scorer.score(row, score);
      long allocated = threads.getThreadAllocatedBytes(me) - before;
      assertTrue(allocated < 16_384, allocated + " bytes for 200,000 calls");
      assertArrayEquals(scorer.score(row), score);
    }
  }

  private static List<Object> cells(Row row) {
    List<Object> cells = new ArrayList<>();
    for (String name : COLUMNS.keySet()) {
      Object cell = row.get(row.fieldIndex(name));
      if (cell instanceof Date date) cell = date.toLocalDate();
      if (cell instanceof Timestamp time) cell = time.toInstant();
      cells.add(cell);
    }
    return cells;
  }

  private static float[] floats(double[] values) {
    float[] floats = new float[values.length];
    for (int i = 0; i < floats.length; i++) floats[i] = (float) values[i];
    return floats;
  }

  private static String text(Throwable e) {
    return e.getCause() == null ? String.valueOf(e.getMessage())
        : e.getMessage() + " / " + text(e.getCause());
  }
}
