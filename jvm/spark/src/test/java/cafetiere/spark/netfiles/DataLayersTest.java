// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.netfiles;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.net.Net;
import cafetiere.spark.BothLines;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.CaffeModel;
import cafetiere.spark.PreflightException;
import cafetiere.spark.Submit;
import cafetiere.spark.TestImages;
import cafetiere.spark.TestWeights;
import cafetiere.spark.plan.SourceLayer;
import java.io.IOException;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Nets with several data layers in a phase, or in one phase alone, and at any place. */
class DataLayersTest {
  private static final int ROWS = 200;
  private static final int STEPS = 5;
  private static final String SCALE = " transform_param { scale: 0.0039 }";
  private static final String IMAGES =
      layer("MemoryData", "image", "label", memory(1, 28, 28) + SCALE);
  private static final String HINTS = layer("MemoryData", "hint", "odd", memory(3, 1, 1));
  private static final String TRAIN = " include { phase: TRAIN } ";
  private static final String TEST = " include { phase: TEST } ";

  @TempDir static Path dir;
  private static SparkSession spark;
  private static Dataset<Row> rows;

  @BeforeAll
  static void makeRows() {
    spark = TestImages.session();
    rows = TestImages.images(spark, ROWS).selectExpr("format_string('%08d', id) id", "label", "image",
        "array(cast(id % 3 as float), cast(id % 5 as float), 1f) hint", "cast(id % 2 as int) odd").cache();
  }

  @BothLines
  @Test
  void severalTrainAndPredictLikeOneWithTheirTops() {
    String one = "layer { name: 'rows' type: 'CoSData' top: 'image' top: 'label' top: 'hint' top: 'odd'"
        + " cos_data_param { batch_size: 16"
        + " top { name: 'image' type: RAW_IMAGE channels: 1 height: 28 width: 28" + SCALE + " }"
        + " top { name: 'label' type: INT sample_num_axes: 0 }"
        + " top { name: 'hint' type: FLOAT_ARRAY channels: 3 height: 1 width: 1 sample_num_axes: 3 }"
        + " top { name: 'odd' type: INT sample_num_axes: 0 } } }\n";
    CaffeModel ofOne = estimator(net(one, "")).fit(rows);
    List<FloatBuffer> weights = TestWeights.of(ofOne);
    CaffeModel ofTwo = estimator(net(HINTS, IMAGES)).setFeaturesCol("hint").setLabelCol("odd").fit(rows);
    assertEquals(weights, TestWeights.of(ofTwo));
    assertEquals(scores(ofOne, rows), scores(ofTwo, rows));
    // featuresCol and labelCol are those of the layer with two tops, wherever it is.
    Dataset<Row> renamed =
        rows.withColumnRenamed("image", "pixels").withColumnRenamed("label", "digit");
    CaffeModel ofThree = estimator(net(alone("hint", 3), IMAGES + alone("odd", 1)))
        .setFeaturesCol("pixels").setLabelCol("digit").setEngine("rounds").setSyncMode("average")
        .fit(renamed);
    CaffeModel ofRounds = estimator(net(one, "")).setEngine("rounds").setSyncMode("average").fit(rows);
    assertEquals(TestWeights.of(ofRounds), TestWeights.of(ofThree));
    assertEquals(scores(ofRounds, rows), scores(ofThree, renamed));
  }

  @Test
  void aPhaseMayHaveOtherLayers() {
    String net = net(layer("MemoryData", "hint", "odd", memory(3, 1, 1) + TRAIN)
        + layer("MemoryData", "hint", "even", memory(3, 1, 1) + TEST), IMAGES)
        .replace("name: 'l2'", "name: 'l2'" + TRAIN)
        + "layer { name: 'l3' type: 'SoftmaxWithLoss' bottom: 'two' bottom: 'even' top: 'l3'" + TEST + "}";
    Dataset<Row> both = rows.withColumn("even", rows.col("odd"));
    CaffeModel model = estimator(net).setSolver(TestImages.solver(STEPS) + " test_interval: 5")
        .setFeaturesCol("hint").setLabelCol("odd").setNumWorkers(1).setValidationData(both).fit(both);
    assertTrue(model.events().contains("\"l3\""), model.events());
    assertEquals(ROWS, model.setOutputCols(new String[] {"l3"}).transform(both).count());
  }

  @Test
  void theOtherPhaseMayHaveNone() {
    String train = net(HINTS, IMAGES).replaceAll("(layer \\{ name: '[^']*')", "$1" + TRAIN);
    CaffeModel model = estimator(train).setFeaturesCol("hint").setLabelCol("odd").fit(rows);
    assertEquals(STEPS, model.summary().steps());
  }

  @BothLines
  @Test
  void layersOfFilesGoInStep() throws IOException {
    rows.selectExpr("id", "label", "1 channels", "28 height", "28 width", "false encoded", "image data")
        .coalesce(1).write().format("lmdb").save(uri("lmdb"));
    writeHdf5("all.h5", ROWS);
    Files.writeString(dir.resolve("list"), uri("all.h5"));
    String images = layer("Data", "image", "label", "data_param { source: '" + uri("lmdb")
        + "' batch_size: 16 backend: LMDB }" + SCALE);
    String hints = layer("HDF5Data", "hint", "odd", "hdf5_data_param { source: '" + uri("list")
        + "' batch_size: 16 }");
    CaffeEstimator files = estimator(inHdf5(net(hints, images)));
    // The rows bear the numbers of the first layer's.
    Dataset<Row> same = rows.selectExpr("concat('0:', cast(id as int)) id", "image", "label digit",
        "hint data", "odd label");
    CaffeEstimator byHand = estimator(inHdf5(net(HINTS, IMAGES))).setFeaturesCol("data");
    assertEquals(TestWeights.of(byHand.fit(same)), TestWeights.of(files.fitFiles(spark)));
    writeHdf5("some.h5", ROWS - 1);
    Files.writeString(dir.resolve("list"), uri("some.h5"));
    String told = assertThrows(PreflightException.class, () -> files.fitFiles(spark)).getMessage();
    assertTrue(told.contains("layer 'data' has 199 records"), told);
    assertTrue(told.contains("layer 'image' has 200"), told);
  }

  @Test
  void topsOfFilesMayHaveDotsInTheirNames() {
    String source = "hdf5_data_param { source: 'list' batch_size: 16 }";
    List<SourceLayer> layers = SourceLayer.of("",
        layer("HDF5Data", "my.hint", "odd", source) + layer("HDF5Data", "image", "label", source), "TRAIN");
    FileTable both = InStep.table(spark, layers, List.of(
        new FileTable(rows.selectExpr("id", "hint `my.hint`", "odd"), "my.hint", "odd", false),
        new FileTable(rows.selectExpr("hint image", "label"), "image", "label", false)));
    assertEquals(List.of("id", "my.hint", "odd", "image", "label"), List.of(both.rows().columns()));
    assertEquals(ROWS, both.rows().count());
  }

  /** With the names that HDF5Output gives the hint and what goes with it. */
  private static String inHdf5(String net) {
    return net.replace("'label'", "'digit'").replace("'hint'", "'data'").replace("'odd'", "'label'");
  }

  @Test
  void theCommandLineFeedsThemToo() throws IOException {
    rows.write().parquet(uri("table"));
    String source = "memory_data_param { source: '" + uri("table") + "'";
    String net = net(HINTS, IMAGES.replace("memory_data_param {", source));
    Files.writeString(dir.resolve("net"), net);
    Files.writeString(dir.resolve("solver"), TestImages.solver(STEPS) + " net: 'net'");
    String[] args = {"-conf", dir.resolve("solver").toString(), "-train", "-test", "-clusterSize", "1",
        "-dataCol", "hint", "-labelCol", "odd", "-model", uri("model"), "-output", uri("tested")};
    Submit.run(spark, args);
    String tested = Files.readString(dir.resolve("tested"));
    assertTrue(tested.contains("l1: ") && tested.contains("l2: "), tested);
    Files.writeString(dir.resolve("net"), net.replace(HINTS,
        HINTS.replace("memory_data_param {", "memory_data_param { source: 'another'")));
    String told = assertThrows(RuntimeException.class, () -> Submit.run(spark, args)).getMessage();
    assertTrue(told.contains("layer 'hint' names the table another and layer 'image'"), told);
  }

  @Test
  void batchesOfOtherSizesAreRefused() {
    String net = net(HINTS, IMAGES.replace("batch_size: 16", "batch_size: 8"));
    String told = assertThrows(PreflightException.class,
        () -> estimator(net.substring(0, net.indexOf("layer { name: 'both'"))).fit(rows)).getMessage();
    assertTrue(told.contains("top 'image' takes batches of 8 rows and 'hint' of 16"), told);
  }

  private static void writeHdf5(String name, int count) {
    String input = "layer { name: 'in' type: 'Input' top: 'hint' top: 'odd' input_param { shape { dim: "
        + count + " dim: 3 dim: 1 dim: 1 } shape { dim: " + count + " } } } layer { name: 'out'"
        + " type: 'HDF5Output' bottom: 'hint' bottom: 'odd' hdf5_output_param { file_name: '"
        + dir.resolve(name) + "' } }";
    try (Net net = Net.of(input, "TEST")) {
      FloatBuffer hints = net.blob("hint").data().asFloatBuffer();
      FloatBuffer odds = net.blob("odd").data().asFloatBuffer();
      for (int id = 0; id < count; id++) {
        hints.put(id % 3).put(id % 5).put(1);
        odds.put(id % 2);
      }
      net.forward();
    }
  }

  private static CaffeEstimator estimator(String net) {
    return new CaffeEstimator().setSolver(TestImages.solver(STEPS)).setNet(net)
        .setFeaturesCol("image").setIdCol("id").setNumWorkers(2).setShards(2);
  }

  /** A digest of what a model computes of all rows. */
  private static Row scores(CaffeModel model, Dataset<Row> table) {
    return model.setOutputCols(new String[] {"two", "one"}).transform(table).coalesce(1)
        .selectExpr("sha2(to_json(collect_list(struct(id, one, two))), 256) scores").first();
  }

  private static String memory(int channels, int height, int width) {
    return "memory_data_param { batch_size: 16 channels: " + channels + " height: " + height + " width: "
        + width + " }";
  }

  private static String layer(String type, String top, String second, String fields) {
    return "layer { name: '" + top + "' type: '" + type + "' top: '" + top + "' top: '" + second + "' "
        + fields + " }\n";
  }

  private static String alone(String top, int channels) {
    return "layer { name: '" + top + "' type: 'Input' top: '" + top + "' input_param { shape { dim: 16"
        + (channels > 1 ? " dim: " + channels : "") + " } } }\n";
  }

  /** A score of the image, and one of it and the hint. */
  private static String net(String ofHint, String ofImage) {
    return ofHint + product("side", "hint", 4) + ofImage + product("one", "image", 10)
        + "layer { name: 'both' type: 'Concat' bottom: 'one' bottom: 'side' top: 'both' }\n"
        + product("two", "both", 2) + loss("l1", "one", "label") + loss("l2", "two", "odd");
  }

  private static String product(String top, String bottom, int size) {
    return "layer { name: '" + top + "' type: 'InnerProduct' bottom: '" + bottom + "' top: '" + top
        + "' inner_product_param { num_output: " + size + " weight_filler { type: 'xavier' } } }\n";
  }

  private static String loss(String top, String scores, String labels) {
    return "layer { name: '" + top + "' type: 'SoftmaxWithLoss' bottom: '" + scores + "' bottom: '"
        + labels + "' top: '" + top + "' }\n";
  }

  private static String uri(String name) {
    return dir.resolve(name).toUri().toString();
  }
}
