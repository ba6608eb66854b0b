// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.netfiles;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
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
import java.awt.image.BufferedImage;
import java.io.IOException;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import javax.imageio.ImageIO;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Nets whose layers read files run on Spark as they are. */
class FileNetsTest {
  private static final int ROWS = 300;
  private static final int STEPS = 6;
  private static final String TRANSFORM =
      "transform_param { scale: 0.0039 mean_value: 30 mirror: true crop_size: 24 }";

  /** Without a scale, pixels make large steps. */
  private static final String SMALL_STEPS =
      TestImages.solver(STEPS).replace("base_lr: 0.01", "base_lr: 0.000001");

  @TempDir static Path dir;
  private static SparkSession spark;
  private static Dataset<Row> images;

  @BeforeAll
  static void writeFiles() throws IOException {
    spark = TestImages.session();
    images = TestImages.images(spark, ROWS).selectExpr("format_string('%08d', id) id", "label",
        "1 channels", "28 height", "28 width", "false encoded", "image data").cache();
    images.coalesce(1).write().format("lmdb").save(uri("images_lmdb"));
    StringBuilder list = new StringBuilder();
    for (Row row : images.orderBy("id").collectAsList()) {
      BufferedImage image = new BufferedImage(28, 28, BufferedImage.TYPE_BYTE_GRAY);
      byte[] pixels = row.getAs("data");
      image.getRaster().setDataElements(0, 0, 28, 28, pixels);
      String name = "an image " + row.getAs("id") + ".png";
      ImageIO.write(image, "png", dir.resolve(name).toFile());
      list.append(name).append(' ').append(row.<Integer>getAs("label")).append('\n');
    }
    Files.writeString(dir.resolve("list"), list);
  }

  @BothLines
  @Test
  void aNetOfADatabaseTrainsLikeTheSameRowsGivenByHand() {
    byte[] byHand = byHand(memory(false)).fit(images).weights();
    assertArrayEquals(byHand, ofNet(database("TRAIN")).fitFiles(spark).weights());
    images.coalesce(1).write().format("leveldb").save(uri("images_leveldb"));
    String leveldb = database("TRAIN").replace("LMDB", "LEVELDB").replace("_lmdb", "_leveldb");
    assertArrayEquals(byHand, ofNet(leveldb).fitFiles(spark).weights());
    // The path does not matter where a table is given.
    String elsewhere = database("TRAIN").replace(dir.toString(), "/nowhere");
    assertArrayEquals(byHand, byHand(elsewhere).fit(images).weights());
  }

  @BothLines
  @Test
  void aNetOfAnImageListTrainsLikeTheSameRowsGivenByHand() {
    String layer = layer("ImageData", "image_data_param { source: '" + uri("list")
        + "' root_folder: '" + uri("") + "' batch_size: 16 is_color: false }", "");
    Dataset<Row> files = ImageList.table(spark, uri("list"), uri(""));
    assertEquals(ROWS, files.count());
    CaffeModel model = ofNet(layer).fitFiles(spark);
    assertArrayEquals(byHand(memory(true)).fit(files).weights(), model.weights());
    assertEquals(ROWS, model.setPredictionCol("p").setOutputCols(new String[0]).transform(files)
        .filter("p is not null").count());
  }

  @Test
  void aNetOfHdf5FilesTrainsLikeTheSameRowsGivenByHand() throws IOException {
    String top = "hdf5_data_param { source: '" + uri("h5_list") + "' batch_size: 16 }";
    String layer = layer("HDF5Data", top, "").replace(TRANSFORM, "");
    Files.writeString(dir.resolve("h5_list"), uri("a.h5") + "\n" + uri("b.h5") + "\n");
    writeHdf5("a.h5", 0, 200);
    writeHdf5("b.h5", 200, 100);
    CaffeEstimator files = ofNet(layer).setSolver(SMALL_STEPS);
    // The same rows, numbers and names, by hand.
    Dataset<Row> rows = images.selectExpr("cast(id as int) number", "label", "data")
        .selectExpr("concat(cast(number >= 200 as int), ':', number % 200) id",
            "array(cast(label as float)) label",
            "transform(sequence(1, 784), i -> cast(conv(hex(substring(data, i, 1)), 16, 10) as float))"
                + " data");
    String input = "layer { name: 'mnist' type: 'Input' top: 'data' top: 'label' input_param {"
        + " shape { dim: 16 dim: 1 dim: 28 dim: 28 } shape { dim: 16 dim: 1 dim: 1 dim: 1 } } }\n";
    byte[] byHand = byHand(input).setSolver(SMALL_STEPS).fit(rows).weights();
    assertArrayEquals(byHand, files.fitFiles(spark).weights());
    Files.writeString(dir.resolve("h5_list"), uri("a.h5") + " " + uri("none.h5"));
    String told = assertThrows(Exception.class, () -> files.fitFiles(spark)).getMessage();
    assertTrue(told.contains("none.h5"), told);
  }

  private static void writeHdf5(String name, int first, int count) throws IOException {
    String input = "layer { name: 'in' type: 'Input' top: 'd' top: 'l' input_param {"
        + " shape { dim: " + count + " dim: 1 dim: 28 dim: 28 } shape { dim: " + count
        + " dim: 1 } } } layer { name: 'out' type: 'HDF5Output' bottom: 'd' bottom: 'l'"
        + " hdf5_output_param { file_name: '" + dir.resolve(name) + "' } }";
    try (Net net = Net.of(input, "TEST")) {
      FloatBuffer data = net.blob("d").data().asFloatBuffer();
      FloatBuffer labels = net.blob("l").data().asFloatBuffer();
      for (Row row : images.orderBy("id").offset(first).limit(count).collectAsList()) {
        for (byte pixel : row.<byte[]>getAs("data")) data.put(pixel & 0xff);
        labels.put(row.<Integer>getAs("label"));
      }
      net.forward();
    }
  }

  @Test
  void imagesOfAListAreMadeToFit() {
    String layer = layer("ImageData", "image_data_param { source: '" + uri("list")
        + "' root_folder: '" + uri("") + "' batch_size: 16 is_color: true new_height: 32"
        + " new_width: 40 }", "").replace("crop_size: 24", "crop_size: 30");
    CaffeModel model = ofNet(layer).setNumWorkers(1).setMaxIter(1).fitFiles(spark);
    assertTrue(model.getNet().contains("width: 40"), model.getNet());
  }

  @Test
  void theTestPhaseReadsItsOwnDatabase() {
    String both = database("TRAIN") + layer("Data", data(), "include { phase: TEST }");
    CaffeEstimator estimator = ofNet(both).setNumWorkers(1);
    CaffeModel model =
        estimator.setSolver(TestImages.solver(STEPS) + " test_interval: 3 test_iter: 2")
            .fitFiles(spark);
    assertTrue(model.events().contains("\"test\""), model.events());
  }

  @Test
  void severalInputLayersAreFedByTheirColumns() {
    String image = "layer { name: 'input' type: 'Input' top: 'data'"
        + " input_param { shape { dim: 16 dim: 1 dim: 28 dim: 28 } } }";
    String label = "layer { name: 'labels' type: 'Input' top: 'label'"
        + " input_param { shape { dim: 16 } } }";
    String fields = "input: 'data' input_shape { dim: 16 dim: 1 dim: 28 dim: 28 }"
        + " input: 'label' input_shape { dim: 16 }";
    CaffeModel layers = alone(image + label).setSolver(SMALL_STEPS).fit(images);
    CaffeModel ofFields = alone(fields).setSolver(SMALL_STEPS).fit(images);
    assertEquals(TestWeights.of(ofFields), TestWeights.of(layers));
  }

  @Test
  void theCommandLineTrainsAndTests() throws IOException {
    String both = database("TRAIN") + layer("Data", data(), "include { phase: TEST }");
    Files.writeString(dir.resolve("net"), both + rest());
    Files.writeString(dir.resolve("solver"), TestImages.solver(STEPS) + " net: 'net'");
    Submit.run(spark, "-conf", dir.resolve("solver").toString(), "-train", "-test", "-clusterSize",
        "2", "-model", uri("model"), "-output", uri("tested"));
    assertArrayEquals(byHand(memory(false)).fit(images).weights(),
        Files.readAllBytes(dir.resolve("model")));
    assertTrue(Files.readString(dir.resolve("tested")).contains("loss: "));
  }

  @Test
  void whatIsMissingIsSaid() throws IOException {
    Dataset<Row> bare = images.drop("height");
    String told = refusal(() -> byHand(database("TRAIN")).fit(bare));
    assertTrue(told.contains("no columns channels, height and width"), told);
    String plain = refusal(() -> ofNet(memory(false)).fitFiles(spark));
    assertTrue(plain.contains("not each has files of its own"), plain);
    Files.writeString(dir.resolve("bad"), "a.png 1\nb.png\n");
    String list = layer("ImageData", "image_data_param { source: '" + uri("bad")
        + "' batch_size: 16 }", "");
    String line = refusal(() -> ofNet(list).fitFiles(spark));
    assertTrue(line.contains("bad:2: a line has the path"), line);
  }

  private static String refusal(Runnable fit) {
    return assertThrows(PreflightException.class, fit::run).getMessage();
  }

  private static CaffeEstimator ofNet(String layers) {
    return new CaffeEstimator().setSolver(TestImages.solver(STEPS)).setNet(layers + rest())
        .setNumWorkers(2);
  }

  private static CaffeEstimator byHand(String layers) {
    return ofNet(layers).setFeaturesCol("data").setIdCol("id");
  }

  /** Of one rank: Spark takes a second to have two of them meet. */
  private static CaffeEstimator alone(String layers) {
    return byHand(layers).setNumWorkers(1);
  }

  /** LeNet without its data layer. */
  private static String rest() {
    String lenet = TestImages.lenet();
    return lenet.substring(lenet.indexOf("layer {\n  name: \"conv1\""));
  }

  private static String database(String phase) {
    return layer("Data", data(), "include { phase: " + phase + " }");
  }

  private static String data() {
    return "data_param { source: '" + uri("images_lmdb") + "' batch_size: 16 backend: LMDB }";
  }

  private static String memory(boolean isEncoded) {
    return layer("MemoryData", "memory_data_param { batch_size: 16 channels: 1 height: 28 width: 28"
        + (isEncoded ? " image_encoded: true }" : " }"), isEncoded ? "" : "include { phase: TRAIN }");
  }

  private static String layer(String type, String param, String rule) {
    return "layer { name: 'mnist' type: '" + type + "' top: 'data' top: 'label' " + param + " "
        + TRANSFORM + " " + rule + " }\n";
  }

  private static String uri(String name) {
    return dir.resolve(name).toUri().toString();
  }
}
