// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import javax.imageio.ImageIO;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * CaffeOnSpark's CoSData layer, whose tops name their columns: image files that are resized, labels
 * as text, and sentences with the batch as their second axis, of which an LSTM learns the next word.
 */
@Timeout(value = 180, unit = TimeUnit.SECONDS)
class CosDataTest {
  private static final int ROWS = 300;
  private static final int PARTS = 4; // of 75 rows: four batches of 16 and a tail
  private static final int WORDS = 4;
  private static final int VOCABULARY = 12;
  private static final String SOLVER = "base_lr: 0.02 momentum: 0.9 lr_policy: 'fixed' type: 'Adam'"
      + " max_iter: 60 random_seed: 7 snapshot_prefix: 'cos' test_interval: 30 test_iter: 1";

  private static final StructType SCHEMA = new StructType()
      .add("id", DataTypes.StringType)
      .add("picture", new StructType().add("image", DataTypes.BinaryType)
          .add("height", DataTypes.IntegerType).add("width", DataTypes.IntegerType))
      .add("digit", DataTypes.StringType)
      .add("cont_sentence", DataTypes.createArrayType(DataTypes.IntegerType))
      .add("input_sentence", DataTypes.createArrayType(DataTypes.IntegerType))
      .add("target_sentence", DataTypes.createArrayType(DataTypes.IntegerType));

  @TempDir static Path dir;
  private static SparkSession spark;

  @BeforeAll
  static void writeTable() throws IOException {
    spark = TestImages.session();
    List<Row> rows = IntStream.range(0, ROWS).mapToObj(CosDataTest::row).toList();
    spark.createDataFrame(rows, SCHEMA).write().parquet(uri("table"));
    Files.writeString(dir.resolve("net.prototxt"), net());
    Files.writeString(dir.resolve("solver.prototxt"), SOLVER + " net: 'net.prototxt'");
  }

  @Test
  void anEstimatorLearnsFromItsColumns() {
    Dataset<Row> table = spark.read().parquet(uri("table"));
    CaffeModel model = estimator().setResize(true).setOutputCols("ip").fit(table);
    Dataset<Row> scored = model.transform(table);
    assertTrue(scored.filter("prediction = cast(digit as int)").count() > 0.95 * ROWS);
    Row first = model.setOutputCols("words").setPredictionCol("").transform(table)
        .orderBy("id").select("words", "target_sentence").first();
    List<Float> scores = first.getList(0);
    assertEquals(WORDS * VOCABULARY, scores.size());
    for (int i = 0; i < WORDS; i++) {
      List<Float> word = scores.subList(i * VOCABULARY, (i + 1) * VOCABULARY);
      assertEquals(first.getList(1).get(i), word.indexOf(Collections.max(word)), scores::toString);
    }
  }

  /**
   * The LSTM goes on where the batch before ended, so the executors' predictors, which serve one
   * partition after another, must begin each one anew.
   */
  @Test
  void aPartitionsOutputsDependOnNoOtherPartition() {
    Dataset<Row> table = spark.read().parquet(uri("table"))
        .withColumn("cont_sentence", functions.expr("array(1, 1, 1, 1)"));
    CaffeModel model = estimator().setSolver(SOLVER.replace("max_iter: 60", "max_iter: 2"))
        .setResize(true).setOutputCols("words").setPredictionCol("").fit(table);
    List<Dataset<Row>> parts = new ArrayList<>();
    for (int i = 0; i < PARTS; i++) {
      parts.add(table.filter("cast(id as int) % " + PARTS + " = " + i).coalesce(1)
          .sortWithinPartitions("id"));
    }
    Map<String, List<Float>> alone = new TreeMap<>();
    parts.forEach(part -> alone.putAll(words(model, List.of(part))));
    assertEquals(List.of(), differing(alone, words(model, parts)));
    Collections.reverse(parts);
    assertEquals(List.of(), differing(alone, words(model, parts)));
    List<Dataset<Row>> one = List.of(table.coalesce(1).sortWithinPartitions("id"));
    assertFalse(differing(alone, words(model, one)).isEmpty(),
        "the net keeps no state: the test shows nothing");
  }

  @Test
  void imagesOfAnotherSizeAreRefusedUnlessTheyAreToBeResized() {
    Dataset<Row> table = spark.read().parquet(uri("table"));
    String message = assertThrows(Exception.class, () -> estimator().fit(table)).getMessage();
    assertTrue(message.contains("the image is 1 x 36 x 40") && message.contains("1 x 28 x 28"),
        message);
  }

  @Test
  void aMissingColumnIsToldByItsName() {
    Dataset<Row> table = spark.read().parquet(uri("table")).drop("digit");
    String message =
        assertThrows(PreflightException.class, () -> estimator().fit(table)).getMessage();
    assertTrue(message.contains("no column 'digit'"), message);
  }

  /** As CaffeOnSpark's examples: the net names the table, the command line says what to do. */
  @Test
  void theCommandLineTrainsTestsAndExtracts() throws IOException {
    submit("-train", "-resize", "-clusterSize", "2", "-checkpointInterval", "50", "-seed", "3");
    submit("-test", "-resize", "-output", uri("result.txt"));
    String result = Files.readString(dir.resolve("result.txt"));
    assertTrue(result.contains("accuracy: 1.0") || result.contains("accuracy: 0.9"), result);

    submit("-features", "ip", "-label", "label", "-resize", "-output", uri("features"));
    List<Row> rows = spark.read().json(uri("features")).orderBy("SampleID").collectAsList();
    assertEquals(ROWS, rows.size());
    assertEquals(List.of("SampleID", "ip", "label"), List.of(rows.get(5).schema().fieldNames()));
    assertEquals(TestImages.CLASSES, rows.get(5).getList(1).size());
    assertEquals(List.of(5.0), rows.get(5).getList(2));
  }

  private static CaffeEstimator estimator() {
    return new CaffeEstimator().setSolver(SOLVER).setNet(net()).setIdCol("id")
        .setNumWorkers(TestImages.EXECUTORS);
  }

  /** The outputs for tables that are a partition each, by id. */
  private static Map<String, List<Float>> words(CaffeModel model, List<Dataset<Row>> parts) {
    JavaRDD<Row> rows = parts.stream().map(Dataset::javaRDD).reduce(JavaRDD::union).orElseThrow();
    assertEquals(parts.size(), rows.getNumPartitions());
    Dataset<Row> table = spark.createDataFrame(rows, parts.get(0).schema());
    return model.transform(table).select("id", "words").collectAsList().stream()
        .collect(Collectors.toMap(row -> row.getString(0), row -> row.getList(1)));
  }

  private static List<String> differing(
      Map<String, List<Float>> expected, Map<String, List<Float>> found) {
    assertEquals(expected.keySet(), found.keySet());
    return expected.keySet().stream().filter(id -> !expected.get(id).equals(found.get(id)))
        .toList();
  }

  private static void submit(String... flags) {
    List<String> all = new ArrayList<>(List.of("-conf", dir.resolve("solver.prototxt").toString(),
        "-model", uri("cos.model")));
    all.addAll(List.of(flags));
    Submit.run(spark, all.toArray(new String[0]));
  }

  /** A picture of another size than the net's, and a sentence that counts on from its label. */
  private static Row row(int id) {
    List<Integer> input = IntStream.range(0, WORDS).map(i -> (id + i) % VOCABULARY).boxed().toList();
    List<Integer> target = input.stream().map(word -> (word + 1) % VOCABULARY).toList();
    List<Integer> cont = IntStream.range(0, WORDS).map(i -> i == 0 ? 0 : 1).boxed().toList();
    return RowFactory.create(String.format("%04d", id), RowFactory.create(picture(id), 36, 40),
        Integer.toString(TestImages.label(id)), cont.toArray(), input.toArray(), target.toArray());
  }

  private static byte[] picture(int id) {
    byte[] pixels = TestImages.image(id);
    BufferedImage small =
        new BufferedImage(TestImages.SIDE, TestImages.SIDE, BufferedImage.TYPE_BYTE_GRAY);
    small.getRaster().setDataElements(0, 0, TestImages.SIDE, TestImages.SIDE, pixels);
    BufferedImage large = new BufferedImage(40, 36, BufferedImage.TYPE_BYTE_GRAY);
    large.createGraphics().drawImage(small, 0, 0, 40, 36, null);
    try {
      ByteArrayOutputStream file = new ByteArrayOutputStream();
      ImageIO.write(large, "png", file);
      return file.toByteArray();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String net() {
    return """
        name: "cos"
        layer { name: "data" type: "CoSData" top: "data" top: "label" top: "cont" top: "input"
          top: "target"
          cos_data_param { batch_size: 16 source: "TABLE"
            top { name: "picture" type: ENCODED_IMAGE_WITH_DIM channels: 1 height: 28 width: 28
                  transform_param { scale: 0.00390625 } }
            top { name: "digit" type: STRING sample_num_axes: 0 }
            top { name: "cont_sentence" type: INT_ARRAY channels: 4 sample_num_axes: 1
                  transpose: true }
            top { name: "input_sentence" type: INT_ARRAY channels: 4 sample_num_axes: 1
                  transpose: true }
            top { name: "target_sentence" type: INT_ARRAY channels: 4 sample_num_axes: 1
                  transpose: true } } }
        layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
          inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
        layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
          include { phase: TEST } }
        layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
        layer { name: "embedding" type: "Embed" bottom: "input" top: "embedded"
          embed_param { num_output: 8 input_dim: 12 bias_term: false
            weight_filler { type: "uniform" min: -0.1 max: 0.1 } } }
        layer { name: "lstm" type: "LSTM" bottom: "embedded" bottom: "cont" top: "state"
          recurrent_param { num_output: 16 weight_filler { type: "uniform" min: -0.1 max: 0.1 } } }
        layer { name: "words" type: "InnerProduct" bottom: "state" top: "words"
          inner_product_param { num_output: 12 axis: 2 weight_filler { type: "xavier" } } }
        layer { name: "next" type: "SoftmaxWithLoss" bottom: "words" bottom: "target" top: "next"
          softmax_param { axis: 2 } }
        """.replace("TABLE", uri("table"));
  }

  private static String uri(String name) {
    return dir.resolve(name).toUri().toString();
  }
}
