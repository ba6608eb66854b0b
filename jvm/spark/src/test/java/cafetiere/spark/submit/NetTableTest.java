// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.submit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.BothLines;
import cafetiere.spark.CaffeModel;
import cafetiere.spark.TestImages;
import cafetiere.spark.plan.NetDescription;
import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.awt.image.BufferedImage;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import javax.imageio.ImageIO;
import javax.imageio.ImageIO;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The tables of CaffeOnSpark's ImageDataFrame, as spark-submit reads them. */
@BothLines
class NetTableTest {
  /** Two pixels of three channels. */
  private static final String BYTES = "abcdef";

  @TempDir static Path dir;
  private static SparkSession spark;

  @BeforeAll
  static void start() {
    spark = TestImages.session();
  }

  @Test
  void rawImagesLieByPixelWhereTheRowsTellTheirSize() {
    Dataset<Row> table = table("cast('abcdef' as binary) data", "'1' label", "3 channels",
        "1 height", "2 width", "false encoded");
    assertEquals("adbecf", fed("sized", table, ""));
  }

  @Test
  void rawImagesOfAnImageDataFrameLieByPixel() {
    assertEquals("adbecf", fed("declared", table("cast('abcdef' as binary) data"),
        "source_class: 'com.yahoo.ml.caffe.ImageDataFrame'"));
  }

  @Test
  void withoutSizesRawImagesLieByChannel() {
    assertEquals(BYTES, fed("plain", table("cast('abcdef' as binary) data"), ""));
  }

  @Test
  void bytesMayBeText() {
    assertEquals(BYTES, fed("text", table("'abcdef' data", "'1' label"), ""));
  }

  @Test
  void encodedRowsOfANetOfRawImagesAreRefused() {
    Dataset<Row> table = table("cast('abcdef' as binary) data", "3 channels", "1 height",
        "2 width", "true encoded");
    String message =
        assertThrows(Exception.class, () -> fed("encoded", table, "")).toString();
    assertTrue(message.contains("column 'encoded' is true, and the net's data layer has"
        + " image_encoded: false"), message);
  }

  /** As in CaffeOnSpark, where the net's word is for tables without the column. */
  @Test
  void theColumnDecidesWhetherImagesAreFiles() throws IOException {
    BufferedImage image = new BufferedImage(2, 1, BufferedImage.TYPE_3BYTE_BGR);
    image.getRaster().setDataElements(0, 0, 2, 1, BYTES.getBytes(StandardCharsets.UTF_8));
    ByteArrayOutputStream png = new ByteArrayOutputStream();
    ImageIO.write(image, "png", png);
    String path = dir.resolve("column").toUri().toString();
    spark.range(1).select(functions.lit(png.toByteArray()).as("data"),
        functions.lit(true).as("encoded")).write().parquet(path);
    for (String word : List.of("", "image_encoded: false ")) {
      String net = net("source_class: 'com.yahoo.ml.caffe.ImageDataFrame'")
          .replace("batch_size: 1", word + "batch_size: 1");
      NetTable opened = open(path, net, "testData", new String[] {"-testData", path});
      assertEquals(List.of(99f, 102f, 98f, 101f, 97f, 100f), same(opened.net(net), opened));
    }
  }

  @Test
  void aNullImageStaysNull() {
    String path = dir.resolve("nulls").toUri().toString();
    table("cast(null as binary) data", "3 channels", "1 height", "2 width").write().parquet(path);
    Row row = open(path, net(""), "testData", new String[] {"-testData", path}).rows().first();
    assertTrue(row.isNullAt(row.fieldIndex("data")));
  }

  /** A table of both, told apart by each row's own word. */
  @Test
  void rawImagesMayLieAmongFiles() throws IOException {
    BufferedImage image = new BufferedImage(2, 1, BufferedImage.TYPE_3BYTE_BGR);
    image.getRaster().setDataElements(0, 0, 2, 1, "cbafed".getBytes(StandardCharsets.UTF_8));
    ByteArrayOutputStream png = new ByteArrayOutputStream();
    ImageIO.write(image, "png", png);
    String path = dir.resolve("both").toUri().toString();
    Dataset<Row> sized = spark.range(1).selectExpr("3 channels", "1 height", "2 width");
    sized.withColumn("data", functions.lit(png.toByteArray()))
        .withColumn("encoded", functions.lit(true))
        .unionByName(sized.withColumn("data", functions.expr("cast('abcdef' as binary)"))
            .withColumn("encoded", functions.lit(false))).coalesce(1).write().parquet(path);
    String net = net("").replace("batch_size: 1", "batch_size: 1 image_encoded: true");
    NetTable opened = open(path, net, "testData", new String[] {"-testData", path});
    List<Row> rows = CaffeModel.ofWeights(new byte[] {10, 1, 'm'}, Map.of()).setNet(net)
        .setOutputCols("same").setPredictionCol("").setFeaturesCol(opened.dataColumn())
        .transform(opened.rows().select("data")).select("same").collectAsList();
    List<Float> planes = List.of(97f, 100f, 98f, 101f, 99f, 102f); // blue comes first in both
    assertEquals(List.of(planes, planes), rows.stream().map(row -> row.getList(0)).toList());
  }

  @Test
  void recordsOfADatabaseSayWhetherTheyAreFiles() throws IOException {
    BufferedImage image = new BufferedImage(2, 1, BufferedImage.TYPE_3BYTE_BGR);
    image.getRaster().setDataElements(0, 0, 2, 1, BYTES.getBytes(StandardCharsets.UTF_8));
    ByteArrayOutputStream png = new ByteArrayOutputStream();
    ImageIO.write(image, "png", png);
    String path = dir.resolve("files").toUri().toString();
    spark.range(1).select(functions.lit(png.toByteArray()).as("data"),
        functions.lit(true).as("encoded")).write().parquet(path);
    String net = net("source_class: 'com.yahoo.ml.caffe.SeqImageDataSource'");
    NetTable opened = open(path, net, "testData", new String[] {"-testData", path});
    Row row = CaffeModel.ofWeights(new byte[] {10, 1, 'm'}, Map.of()).setNet(opened.net(net))
        .setOutputCols("same").setPredictionCol("").setFeaturesCol(opened.dataColumn())
        .transform(opened.rows().select("data")).select("same").first();
    // Red comes first in Java, and last in Caffe.
    assertEquals(List.of(99f, 102f, 98f, 101f, 97f, 100f), row.getList(0));
  }

  @Test
  void theNetSelectsColumnsBySql() {
    String path = dir.resolve("sql").toUri().toString();
    table("'7' digit", "cast('abcdef' as binary) pixels", "3 n").write().json(path);
    String net = net("").replace("source: 'nowhere'", "source: '" + path + "'"
        + " dataframe_format: 'json' dataframe_column_select: 'unbase64(pixels) as data'"
        + " dataframe_column_select: 'cast(digit as int) + n as label'");
    NetTable opened = open("", net, "testData", new String[0]);
    Row row = opened.rows().first();
    assertEquals(List.of("data", "label"), List.of(opened.rows().columns()));
    assertEquals(BYTES, new String(row.<byte[]>getAs("data"), StandardCharsets.UTF_8));
    assertEquals(10L, row.getLong(1));
  }

  /** Spark's own sources of files and of images, by the net's fields alone. */
  @Test
  void filesAndImagesOfSparksSources() throws IOException {
    BufferedImage picture = new BufferedImage(2, 1, BufferedImage.TYPE_3BYTE_BGR);
    picture.setRGB(0, 0, 0x030201);
    picture.setRGB(1, 0, 0x060504);
    Path folder = Files.createDirectory(dir.resolve("pictures"));
    ImageIO.write(picture, "png", folder.resolve("7.png").toFile());
    String source = "source: '" + folder.toUri() + "' dataframe_format: ";
    String files = net("").replace("source: 'nowhere'", source + "'binaryFile' image_encoded: true"
        + " dataframe_column_select: 'content as data' dataframe_column_select:"
        + " 'regexp_extract(path, \"([0-9]+).png\", 1) as label'");
    String images = net("").replace("source: 'nowhere'", source + "'image'"
        + " dataframe_column_select: 'image as data'");
    List<Float> planes = List.of(1f, 4f, 2f, 5f, 3f, 6f); // blue, green and red
    assertEquals(planes, same(files, open("", files, "testData", new String[0])));
    assertEquals(planes, same(images, open("", images, "testData", new String[0])));
    assertEquals("7", open("", files, "testData", new String[0]).rows().select("label").first()
        .getString(0));
  }

  /** The net's first blob, as its first row has it. */
  private static List<Float> same(String net, NetTable opened) {
    return CaffeModel.ofWeights(new byte[] {10, 1, 'm'}, Map.of()).setNet(net)
        .setOutputCols("same").setPredictionCol("").setFeaturesCol(opened.dataColumn())
        .transform(opened.rows().select("data")).select("same").first().getList(0);
  }

  @Test
  void anUnknownSourceIsRefusedByName() {
    String net = net("source_class: 'com.yahoo.ml.caffe.ImageDataFram'");
    String message = assertThrows(Flags.UsageException.class,
        () -> open("nowhere", net, "testData", new String[0])).getMessage();
    assertTrue(message.startsWith("source_class com.yahoo.ml.caffe.ImageDataFram is not known; did"
        + " you mean com.yahoo.ml.caffe.ImageDataFrame? Or store"), message);
    String other = net("source_class: 'org.example.Mine'");
    assertTrue(assertThrows(Flags.UsageException.class,
        () -> open("nowhere", other, "testData", new String[0])).getMessage()
        .startsWith("source_class org.example.Mine is not known; "));
  }

  /** The bytes as the net's first blob has them. */
  private static String fed(String name, Dataset<Row> table, String more) {
    String path = dir.resolve(name).toUri().toString();
    table.write().parquet(path);
    String net = net(more);
    NetTable opened = open(path, net, "testData", new String[] {"-testData", path});
    Row row = CaffeModel.ofWeights(new byte[] {10, 1, 'm'}, Map.of()).setNet(net)
        .setOutputCols("same").setPredictionCol("").setFeaturesCol(opened.dataColumn())
        .transform(opened.rows().select("data")).select("same").first();
    StringBuilder text = new StringBuilder();
    for (float value : row.<Float>getList(0)) text.append((char) value);
    assertEquals(BYTES.length(), text.toString().getBytes(StandardCharsets.UTF_8).length);
    return text.toString();
  }

  private static NetTable open(String path, String net, String flag, String[] more) {
    String[] all = new String[more.length + 5];
    List<String> first = List.of("-conf", "s", "-test", "-model", "m");
    for (int i = 0; i < 5; i++) all[i] = first.get(i);
    System.arraycopy(more, 0, all, 5, more.length);
    NetDescription description = NetDescription.of("", net, "TEST");
    return NetTable.open(spark, Flags.parse(all), description, net, flag);
  }

  private static Dataset<Row> table(String... columns) {
    return spark.range(1).selectExpr(columns);
  }

  private static String net(String more) {
    return "layer { name: 'data' type: 'MemoryData' top: 'data' top: 'label' " + more
        + " memory_data_param { source: 'nowhere' batch_size: 1 channels: 3 height: 1 width: 2 } }"
        + " layer { name: 'same' type: 'Power' bottom: 'data' top: 'same' }";
  }
}
