// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.Engine;
import cafetiere.spark.BothLines;
import cafetiere.spark.Logged;
import cafetiere.spark.PreflightException;
import cafetiere.spark.TestImages;
import cafetiere.spark.TrainingSummary;
import cafetiere.spark.connect.RunReport;
import cafetiere.spark.cost.Account;
import cafetiere.spark.keyed.KeyedTraining;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.ml.Pipeline;
import org.apache.spark.ml.PipelineStage;
import org.apache.spark.ml.evaluation.MulticlassClassificationEvaluator;
import org.apache.spark.ml.feature.SQLTransformer;
import org.apache.spark.ml.linalg.Vector;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.tuning.CrossValidator;
import org.apache.spark.ml.tuning.CrossValidatorModel;
import org.apache.spark.ml.tuning.ParamGridBuilder;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** One net per key. */
class KeyedNetsTest {
  private static final String[] FEATURES = {"age", "city", "visits", "since", "taste"};
  private static final int KEYS = 40;

  private static SparkSession spark;
  private static Dataset<Row> table;
  private static CaffeClassificationModel model;
  private static Map<String, Row> nets;

  /** Keys of 4 rows and more, skewed: half of the rows have the first; and three that have no net. */
  @BeforeAll
  static void train() {
    spark = TestImages.session();
    table = Visitors.table(spark, 0, 1500)
        .withColumn("shop", functions.expr("concat('shop ', if(id % 2 = 0, 0, id % " + KEYS + "))"))
        .unionByName(Visitors.table(spark, 1500, 1510).selectExpr("*",
            "'one class' shop").withColumn("answer", functions.lit("yes")))
        .unionByName(Visitors.table(spark, 1510, 1520).selectExpr("*", "'a gap' shop")
            .withColumn("answer", functions.expr("nullif(answer, 'no')")))
        .unionByName(Visitors.table(spark, 1520, 1521).selectExpr("*", "'one row' shop"))
        .repartition(3, functions.col("id")).cache();
    model = keyed().fit(table);
    nets = byKey(model);
  }

  private static CaffeClassifier classifier() {
    return new CaffeClassifier().setFeaturesCols(FEATURES).setLabelCol("answer").setIdCol("id")
        .setLayers(8, 4).setBatchSize(16).setMaxEpochs(3).setBaseLr(0.01).setSeed(5);
  }

  private static CaffeClassifier keyed() {
    return classifier().setGroupCol("shop");
  }

  private static Map<String, Row> byKey(CaffeClassificationModel of) {
    Map<String, Row> rows = new HashMap<>();
    for (Row row : of.nets().collectAsList()) rows.put(row.getString(0), row);
    return rows;
  }

  @Test
  void aModelSaysWhatItIs() {
    assertEquals("CaffeClassificationModel: uid=" + model.uid() + ", groupCol=shop", model.toString());
  }

  /** A task that went on would hold its slot, and the job after it would wait. */
  @Test
  void aFitThatIsCancelledFreesItsSlots() throws Exception {
    CaffeClassifier endless = keyed().setMaxEpochs(100_000_000);
    Thread fit = new Thread(() -> assertThrows(Exception.class, () -> endless.fit(table)));
    fit.start();
    for (int i = 0; i < 30 && fit.isAlive(); i++) {
      fit.join(3_000);
      spark.sparkContext().cancelAllJobs();
    }
    assertFalse(fit.isAlive(), "fit went on");
    assertTimeoutPreemptively(Duration.ofMinutes(2), () -> assertEquals(4,
        spark.range(0, 4, 1, TestImages.EXECUTORS).count()));
  }

  @BothLines
  @Test
  void aKeysNetIsThatOfItsRowsAlone() {
    for (String shop : List.of("shop 0", "shop 7")) {
      Dataset<Row> own = table.filter(functions.col("shop").equalTo(shop));
      CaffeClassificationModel alone = classifier().setNumWorkers(1).fit(own);
      Row net = nets.get(shop);
      assertArrayEquals(alone.caffeModel().weights(), net.<byte[]>getAs("weights"), shop);
      assertEquals(alone.summary().loss(), net.<Double>getAs("loss"), shop);
      assertEquals(own.count(), net.<Long>getAs("rows"));
      assertEquals(List.of("no", "yes"), net.getList(net.fieldIndex("classes")));
      String[] outputs = {"id", "rawPrediction", "probability", "prediction", "predictedLabel"};
      assertEquals(
          alone.transform(own).selectExpr(outputs).orderBy("id").collectAsList(),
          model.transform(own).selectExpr(outputs).orderBy("id").collectAsList());
    }
  }

  @Test
  void thePartitioningDoesNotShow() {
    Map<String, Row> others = byKey(keyed().fit(table.repartition(7).coalesce(2)));
    assertEquals(nets.keySet(), others.keySet());
    nets.forEach((shop, net) -> {
      assertArrayEquals(net.<byte[]>getAs("weights"), others.get(shop).<byte[]>getAs("weights"));
      assertEquals(net.<String>getAs("error"), others.get(shop).getAs("error"));
    });
  }

  @Test
  void whatIsWrongWithAKeyIsInItsRow() {
    assertEquals(KEYS / 2 + 1 + 3, nets.size());
    assertEquals(KEYS / 2 + 1,
        nets.values().stream().filter(net -> net.getAs("error") == null).count());
    assertTrue(error("one class").contains("'answer' is \"yes\" in all rows"), error("one class"));
    assertTrue(error("a gap").contains("the label is missing"), error("a gap"));
    assertTrue(error("one row").contains("1 row(s), and a net needs 2"), error("one row"));
    assertNull(nets.get("a gap").getAs("weights"));
    assertEquals(10L, nets.get("a gap").<Long>getAs("rows"));
  }

  @Test
  void theNetOfAKeyIsACaffeModel() {
    Dataset<Row> own = table.filter("shop = 'shop 7'");
    List<Row> scores = model.netOf("shop 7").transform(own).orderBy("id")
        .select("probability").collectAsList();
    List<Row> told = model.transform(own).orderBy("id").select("probability").collectAsList();
    for (int i = 0; i < told.size(); i++) {
      assertEquals((double) (float) scores.get(i).<Float>getList(0).get(1),
          told.get(i).<Vector>getAs(0).apply(1));
    }
    assertEquals(own.count(), scores.size());
    assertTrue(assertThrows(IllegalArgumentException.class, () -> model.netOf("a gap"))
        .getMessage().contains("the label is missing"));
    assertThrows(IllegalArgumentException.class, () -> model.netOf("nowhere"));
    assertThrows(IllegalArgumentException.class, () -> model.netOf(3));
  }

  @Test
  void theModelOfAKeyStandsAlone(@TempDir Path folder) {
    Dataset<Row> own = table.filter("shop = 'shop 7'");
    CaffeClassificationModel one = model.modelOf("shop 7");
    assertEquals("", one.getGroupCol());
    assertArrayEquals(new String[] {"no", "yes"}, one.labels());
    assertFalse(one.hasSeveralLabels() || model.hasSeveralLabels());
    String[] outputs = {"id", "rawPrediction", "probability", "prediction", "predictedLabel"};
    assertEquals(model.transform(own).selectExpr(outputs).orderBy("id").collectAsList(),
        one.transform(own).selectExpr(outputs).orderBy("id").collectAsList());
    one.exportOnnx(folder.resolve("one.onnx").toString());
    assertTrue(Files.exists(folder.resolve("one.onnx")));
    assertTrue(assertThrows(UnsupportedOperationException.class, () -> model.exportOnnx("all.onnx"))
        .getMessage().contains("modelOf(key)"));
  }

  @BothLines
  @Timeout(value = 60, unit = TimeUnit.SECONDS)
  @Test
  void theTrainingIsAccountedFor(@TempDir Path folder) throws Exception {
    CaffeClassificationModel fitted = keyed().setPricePerCoreHour(3)
        .setEvents(folder.resolve("run").toString()).fit(table);
    TrainingSummary summary = fitted.summary();
    assertEquals("keys", summary.engine());
    assertEquals(KEYS / 2 + 1, summary.keys());
    assertEquals(3, summary.failedKeys());
    assertEquals(1500, summary.rowsGiven());
    assertEquals(21, summary.rowsSkipped());
    assertEquals(List.of(1500L, 1500L, 1500L), summary.rowsPerEpoch());
    assertEquals("21 nets for 24 keys (nets() says why the others have none); 1,500 rows given, 21 others"
        + " left out; 4,500 used in 3 epochs, each row once in each whole epoch", summary.rowsText());
    Account account = summary.account();
    assertEquals(account.seconds() * account.cores() / 3600, account.coreHours().total(),
        0.02 * account.coreHours().total());
    assertTrue(account.coreHours().computing() > 0 && account.coreHours().data() > 0, account.text());
    assertEquals(3 * account.coreHours().total(), account.cost());
    List<JsonNode> events = fitted.events().lines().map(Json::parse).toList();
    JsonNode last = events.get(events.size() - 2);
    assertEquals("keys", last.path("event").asText());
    assertEquals(KEYS / 2 + 1 + 3, last.path("keys").asLong());
    assertEquals(last.path("of"), last.path("tasks"));
    List<Long> tasks = events.stream().filter(event -> event.has("tasks"))
        .map(event -> event.path("tasks").asLong()).toList();
    assertEquals(tasks.stream().distinct().sorted().toList(), tasks);
    assertEquals("account", events.get(events.size() - 1).path("event").asText());
    String page = Engine.report(fitted.events(), fitted.result());
    assertTrue(page.contains("keys with a net") && page.contains("<svg"), page);
    while (!statesOfRuns(fitted.uid()).equals(List.of("ended"))) Thread.sleep(10); // Spark's queue
    assertEquals(fitted.events(), Files.readString(folder.resolve("run.jsonl")));
    fitted.write().save(folder.resolve("model").toString());
    assertEquals(fitted.result(),
        CaffeClassificationModel.load(folder.resolve("model").toString()).result());
  }

  @Timeout(value = 60, unit = TimeUnit.SECONDS)
  @Test
  void aFitWhoseEventsCannotBeWrittenLeavesNothing(@TempDir Path folder) throws Exception {
    Path file = Files.createFile(folder.resolve("file"));
    CaffeClassifier keyed = keyed().setEvents(file.resolve("run").toString());
    String told = assertThrows(UncheckedIOException.class, () -> keyed.fit(table)).getMessage();
    assertTrue(told.startsWith("events cannot be written to "), told);
    while (!statesOfRuns(keyed.uid()).equals(List.of("failed"))) Thread.sleep(10); // Spark's queue
    assertTrue(Thread.getAllStackTraces().keySet().stream()
        .noneMatch(thread -> thread.getName().equals("cafetiere-event-files")));
  }

  private static List<String> statesOfRuns(String owner) {
    return new RunReport().setOwner(owner).transform(table).collectAsList().stream()
        .map(run -> run.<String>getAs("state")).toList();
  }

  /** Keys of 2 to 10,000 rows. */
  @Tag("long-run")
  @Test
  void twentyRandomKeysHaveTheNetsOfTheirRowsAlone() {
    Random random = new Random();
    long seed = random.nextLong();
    random.setSeed(seed);
    String sizes = IntStream.range(0, 60)
        .mapToObj(key -> "(" + key + ", " + Math.round(2 * Math.pow(5000, random.nextDouble())) + ")")
        .collect(Collectors.joining(", "));
    Dataset<Row> rows = spark.sql("SELECT key, explode(sequence(1, size)) i FROM VALUES " + sizes + " t(key, size)")
        .selectExpr("key", "i id", "hash(key, i) % 100 a", "concat('c', hash(i, key) % 7) city",
            "if(i <= 2, i % 2 = 0, hash(key, i) % 100 + hash(i) % 30 > 0) answer").cache();
    CaffeClassifier learner = new CaffeClassifier().setFeaturesCols("a", "city").setLabelCol("answer")
        .setIdCol("id").setLayers(8).setBatchSize(32).setMaxEpochs(2);
    Dataset<Row> trained = learner.copy(ParamMap.empty()).setGroupCol("key")
        .fit(rows.repartition(1 + random.nextInt(9))).nets().cache();
    for (int i = 0; i < 20; i++) {
      int key = random.nextInt(60);
      Row net = trained.filter("key = " + key).first();
      byte[] alone = learner.setNumWorkers(1).fit(rows.filter("key = " + key).repartition(2))
          .caffeModel().weights();
      assertArrayEquals(alone, net.<byte[]>getAs("weights"), "seed " + seed + ", key " + key);
    }
  }

  private static String error(String shop) {
    return nets.get(shop).getAs("error");
  }

  @Test
  void rowsOfOtherKeysAreNotPredicted() {
    Dataset<Row> odd = table.filter("id >= 1490").selectExpr(
        "id", "age", "city", "visits", "since", "taste",
        "if(id = 1495, 'unseen', if(id = 1497, null, shop)) shop");
    List<Row> rows = model.transform(odd).orderBy("id").collectAsList();
    assertEquals(31, rows.size());
    for (Row row : rows) {
      long id = row.getAs("id");
      boolean isKnown = id < 1500 && id != 1495 && id != 1497;
      assertEquals(isKnown, row.getAs("prediction") != null, row::toString);
      assertEquals(isKnown, row.getAs("probability") != null, row::toString);
      if (isKnown) assertEquals(2, row.<Vector>getAs("rawPrediction").size());
    }
  }

  /** As a join leaves them; a net for all rows transforms such a table, too. */
  @Test
  void columnsThatAreNotReadMayHaveOneName() {
    Dataset<Row> own = table.filter("id < 100");
    Dataset<Row> twice = own.selectExpr("*", "id * 2 extra", "string(id) extra");
    Dataset<Row> scored = model.transform(twice);
    assertEquals(model.transform(own).select("id", "prediction").orderBy("id").collectAsList(),
        scored.select("id", "prediction").orderBy("id").collectAsList());
    List<String> names = List.of(scored.columns());
    for (Row row : scored.collectAsList()) {
      assertEquals(2 * row.<Long>getAs("id"), row.getLong(names.indexOf("extra")));
      assertEquals("" + row.<Long>getAs("id"), row.getString(names.lastIndexOf("extra")));
    }
    String told = assertThrows(PreflightException.class,
        () -> model.transform(own.selectExpr("*", "shop"))).getMessage();
    assertTrue(told.contains(
        "the table has 2 columns named 'shop', which is groupCol: rename or drop all but one"), told);
  }

  /** Evaluators know no nulls, which rows of keys without a net have. */
  @Test
  void aFilterLeavesRowsWithoutNetsOutOfACrossValidation() {
    Pipeline pipeline = new Pipeline().setStages(new PipelineStage[] {
        keyed().setLabelCol("buys").setMinGroupRows(20),
        new SQLTransformer().setStatement("SELECT * FROM __THIS__ WHERE prediction IS NOT NULL")});
    CrossValidatorModel best = new CrossValidator().setEstimator(pipeline)
        .setEstimatorParamMaps(new ParamGridBuilder().build()).setNumFolds(2).setSeed(1)
        .setEvaluator(new MulticlassClassificationEvaluator().setLabelCol("buys")).fit(table);
    assertTrue(best.avgMetrics()[0] > 0.4, () -> "" + best.avgMetrics()[0]);
    long scored = best.transform(table).count();
    assertTrue(0 < scored && scored < table.count(), () -> scored + " rows");
  }

  @BothLines
  @Test
  void isSavedAndLoaded(@TempDir Path folder) throws Exception {
    model.write().save(folder.resolve("model").toString());
    CaffeClassificationModel loaded =
        CaffeClassificationModel.load(folder.resolve("model").toString());
    assertEquals("shop", loaded.getGroupCol());
    assertEquals(
        model.transform(table).orderBy("id").collectAsList(),
        loaded.copy(ParamMap.empty()).transform(table).orderBy("id").collectAsList());
    String told = assertThrows(UnsupportedOperationException.class, loaded::caffeModel).getMessage();
    assertTrue(told.contains("nets()"), told);
    Dataset<Row> other = table.withColumn("since", functions.expr("timestamp(since)"));
    assertTrue(assertThrows(PreflightException.class, () -> loaded.transform(other)).getMessage()
        .contains("'since' is of type timestamp, and the net has learned it as a date"));
  }

  @Test
  void isNotSavedOverItself(@TempDir Path folder) throws Exception {
    String path = folder.resolve("model").toString();
    model.write().save(path);
    CaffeClassificationModel changed = CaffeClassificationModel.load(path).setPredictionCol("said");
    for (String place : List.of(path, folder.toUri().toString())) {
      String told = assertThrows(IllegalArgumentException.class,
          () -> changed.write().overwrite().save(place)).getMessage();
      assertTrue(told.contains("still read from " + path) && told.contains("another path"), told);
    }
    changed.write().overwrite().save(path + "2");
    CaffeClassificationModel again = CaffeClassificationModel.load(path + "2");
    assertEquals("said", again.getPredictionCol());
    assertEquals(nets.keySet(), byKey(again).keySet());
    assertEquals(nets.keySet(), byKey(CaffeClassificationModel.load(path)).keySet());
  }

  @Test
  void regressorsHaveKeysOfNumbers() {
    Dataset<Row> paid = table.filter("id < 600").selectExpr("*", "id % 5 group")
        .withColumn("paid", functions.expr("if(id = 4, double('NaN'), paid)"));
    CaffeRegressor regressor = new CaffeRegressor().setFeaturesCols("city", "visits", "taste")
        .setLabelCol("paid").setBatchSize(16).setMaxEpochs(8);
    CaffeRegressionModel keyed =
        regressor.copy(ParamMap.empty()).setGroupCol("group").setMinGroupRows(100).fit(paid);
    Dataset<Row> own = paid.filter("group = 3");
    CaffeRegressionModel alone = regressor.setNumWorkers(1).fit(own);
    assertArrayEquals(keyed.netOf(3).weights(), keyed.netOf("3").weights());
    assertTrue(assertThrows(IllegalArgumentException.class, () -> keyed.netOf("three")).getMessage()
        .contains("no row in training had the key three"));
    Row net = keyed.nets().filter("key = 3").first();
    assertNotNull(net.getAs("net"));
    assertArrayEquals(alone.caffeModel().weights(), net.<byte[]>getAs("weights"));
    assertEquals(
        alone.transform(own).select("id", "prediction").orderBy("id").collectAsList(),
        keyed.transform(own).select("id", "prediction").orderBy("id").collectAsList());
    String error = keyed.nets().filter("key = 4").first().getAs("error");
    assertTrue(error.contains("without missing values"), error);
    assertEquals(480, keyed.transform(paid).filter("prediction is not null").count());
    assertTrue(assertThrows(PreflightException.class,
        () -> keyed.transform(paid.selectExpr("*", "cast(group as string) g").drop("group")
            .withColumnRenamed("g", "group"))).getMessage().contains("was bigint in training"));
  }

  /** The table of nets has such a column; Spark's names have no case. */
  @Test
  void aColumnMayBeCalledKey() {
    Dataset<Row> named = table.filter("id < 600").withColumnRenamed("city", "Key").cache();
    String city = named.filter("shop = 'shop 0' and Key is not null").first().getAs("Key");
    for (String[] key : new String[][] {{"shop", "shop 0"}, {"Key", city}}) {
      CaffeClassifier learner = classifier().setFeaturesCols("age", "Key");
      CaffeClassificationModel keys = learner.copy(ParamMap.empty()).setGroupCol(key[0]).fit(named);
      assertEquals("key", keys.nets().columns()[0]);
      Dataset<Row> own = named.filter(functions.col(key[0]).equalTo(key[1]));
      CaffeClassificationModel alone = learner.setNumWorkers(1).fit(own);
      assertArrayEquals(alone.caffeModel().weights(), byKey(keys).get(key[1]).<byte[]>getAs("weights"));
      assertEquals(alone.transform(own).select("id", "prediction").orderBy("id").collectAsList(),
          keys.transform(own).select("id", "prediction").orderBy("id").collectAsList());
    }
    named.unpersist();
  }

  @Test
  void aFitThatTrainsNoNetSaysSo() {
    assertTrue(assertThrows(PreflightException.class, () -> keyed().setFeaturesCols("age", "city")
        .fit(table.filter("id < 0"))).getMessage().contains("the table has no rows: nothing can be learned"));
    try (Logged logged = new Logged(KeyedTraining.class)) {
      CaffeClassificationModel none = keyed().setMinGroupRows(5000).fit(table.filter("id < 400"));
      assertTrue(logged.text().contains("WARN None of the " + none.nets().count() + " keys of groupCol has a"
          + " net, so that all predictions are null; of the first, shop 0: "), logged.text());
      assertTrue(logged.text().contains("200 row(s), and a net needs 5000"), logged.text());
    }
  }

  @Test
  void aFitThatFailsKeepsNothing() {
    Dataset<Row> failing = table.filter("id < 200")
        .withColumn("age", functions.expr("if(id = 150, cast(raise_error('no age') as double), age)"));
    JavaSparkContext sc = JavaSparkContext.fromSparkContext(spark.sparkContext());
    Set<Integer> before = Set.copyOf(sc.getPersistentRDDs().keySet());
    assertThrows(Exception.class, () -> keyed().fit(failing));
    assertEquals(before, sc.getPersistentRDDs().keySet());
  }

  @Test
  void rowsAndClassesOfKeysHaveWeights() {
    Dataset<Row> weighted = table.filter("id < 600").selectExpr("*", "1 + id % 3 weight");
    CaffeClassifier classifier = classifier().setWeightCol("weight").setClassWeights("yes=3");
    CaffeClassificationModel keys = classifier.copy(ParamMap.empty()).setGroupCol("shop").fit(weighted);
    Dataset<Row> own = weighted.filter("shop = 'shop 0'");
    Row net = byKey(keys).get("shop 0");
    assertArrayEquals(classifier.setNumWorkers(1).fit(own).caffeModel().weights(),
        net.<byte[]>getAs("weights"));
    assertEquals(List.of("no", "yes"), net.getList(net.fieldIndex("classes")));
    assertEquals(own.count(),
        keys.transform(own.drop("weight", "answer")).filter("prediction is not null").count());
  }

  @Test
  void whatKeysDoNotHaveIsRefusedByName() {
    assertTrue(refusal(keyed().setGroupCol("shops")).contains("did you mean 'shop'"));
    assertTrue(refusal(keyed().setGroupCol("customer")).contains("no column of the table. It has: id,"));
    assertTrue(refusal(keyed().setGroupCol("age")).contains("no keys"));
    assertTrue(refusal(keyed().setNumWorkers(2)).contains("numWorkers is set"));
    assertTrue(refusal(keyed().setCheckpointDir("/x")).contains("checkpointDir is set"));
    assertTrue(refusal(keyed().setValidationIndicatorCol("held"))
        .contains("validationIndicatorCol is set"));
    assertTrue(assertThrows(PreflightException.class, () -> keyed().explain(table)).getMessage()
        .contains("groupCol is set, and explain tells of one net"));
  }

  private static String refusal(CaffeClassifier classifier) {
    return assertThrows(PreflightException.class, () -> classifier.fit(table)).getMessage();
  }
}
