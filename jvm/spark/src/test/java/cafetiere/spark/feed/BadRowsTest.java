// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.feed;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.CaffeModel;
import cafetiere.spark.TestImages;
import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.imageio.ImageIO;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Rows that cannot be fed stop a job, or are left out and counted. */
class BadRowsTest {
  private static final int ROWS = 160;
  private static final int BAD = 4;
  private static final StructType SCHEMA = new StructType().add("id", DataTypes.LongType)
      .add("label", DataTypes.IntegerType).add("image", DataTypes.BinaryType);

  private static SparkSession spark;
  private static Dataset<Row> good;
  private static Dataset<Row> all;

  @BeforeAll
  static void draw() throws IOException {
    spark = TestImages.session();
    List<Row> rows = new ArrayList<>();
    for (Row row : TestImages.images(spark, ROWS).orderBy("id").collectAsList()) {
      rows.add(RowFactory.create(
          row.<Long>getAs("id"), row.<Integer>getAs("label"), png(28, row.getAs("image"))));
    }
    good = spark.createDataFrame(rows, SCHEMA);
    byte[] whole = png(28, new byte[28 * 28]);
    rows.add(3, RowFactory.create(1003L, 1, Arrays.copyOf(whole, whole.length / 2)));
    rows.add(50, RowFactory.create(1050L, 2, new byte[] {1, 2, 3}));
    rows.add(100, RowFactory.create(1100L, 3, png(30, new byte[30 * 30])));
    rows.add(RowFactory.create(1200L, 4, null));
    all = spark.createDataFrame(rows, SCHEMA);
  }

  @Test
  void theFirstOneStopsATrainingWithItsId() {
    String told = refusal(all.filter("id < 1050"));
    assertTrue(told.contains("id 1003"), told);
    String isNull = refusal(all.filter("id < 1000 or id = 1200"));
    assertTrue(isNull.contains("the row with id 1200 is null"), isNull);
  }

  @Test
  void withoutThemTheWeightsAreThoseOfTheOthers() {
    byte[] wanted = estimator().fit(good).weights();
    CaffeModel model = estimator().setSkipBadRows(true).fit(all.repartition(3));
    assertArrayEquals(wanted, model.weights());
    assertEquals(BAD, model.summary().rowsSkipped());
    assertEquals(ROWS, model.summary().rowsGiven());
  }

  @Test
  void theNumberOfThreadsDoesNotShowInTheWeights() {
    byte[] wanted = estimator().fit(good).weights();
    for (int threads : new int[] {2, 4}) {
      assertArrayEquals(wanted, estimator().setPrefetchThreads(threads).fit(good).weights());
    }
  }

  @Test
  void theOtherEnginesDoTheSame() {
    CaffeEstimator rounds = estimator().setEngine("rounds").setSyncMode("average").setSyncPeriod(2);
    CaffeModel model = rounds.setSkipBadRows(true).fit(all);
    assertArrayEquals(rounds.fit(good).weights(), model.weights());
    assertEquals(BAD, model.summary().rowsSkipped());
    assertEquals(ROWS, model.summary().rowsGiven());
    CaffeModel survivors = estimator().setSyncMode("easgd").setSurvivors(true).setSkipBadRows(true)
        .fit(all);
    assertEquals(BAD, survivors.summary().rowsSkipped());
    assertEquals(ROWS, survivors.summary().rowsGiven());
  }

  @Test
  void outputsOfABadRowAreNull() {
    CaffeModel model = estimator().fit(good).setSkipBadRows(true);
    assertThrows(Exception.class, () -> model.copy(ParamMap.empty())
        .setSkipBadRows(false).transform(all).collect());
    Map<Long, Object> wanted = predictions(model.transform(good));
    Map<Long, Object> found = predictions(model.transform(all));
    assertEquals(BAD, found.values().stream().filter(value -> value == null).count());
    found.values().removeIf(value -> value == null);
    assertEquals(wanted.keySet(), found.keySet());
    wanted.forEach((id, outputs) -> assertEquals(outputs, found.get(id), "of row " + id));
    // A batch of nothing but bad rows.
    assertEquals(1, model.setBatchSize(1).transform(all.filter("id = 1050"))
        .filter("prediction is null and ip2 is null").count());
  }

  private static Map<Long, Object> predictions(Dataset<Row> table) {
    Map<Long, Object> found = new TreeMap<>();
    for (Row row : table.collectAsList()) {
      Object outputs = row.getAs("ip2");
      Object both = outputs == null && row.getAs("prediction") == null ? null
          : outputs + " " + row.getAs("prediction");
      found.put(row.getAs("id"), both);
    }
    return found;
  }

  private static String refusal(Dataset<Row> table) {
    return assertThrows(Exception.class, () -> estimator().setMaxIter(6).fit(table))
        .getMessage();
  }

  private static CaffeEstimator estimator() {
    String net = TestImages.lenet();
    String rest = net.substring(net.indexOf("layer {\n  name: \"conv1\""));
    return new CaffeEstimator().setSolver(TestImages.solver(4)).setFeaturesCol("image")
        .setIdCol("id").setNumWorkers(2).setOutputCols("ip2")
        .setNet("layer { name: 'images' type: 'MemoryData' top: 'data' top: 'label'"
            + " memory_data_param { batch_size: 16 channels: 1 height: 28 width: 28"
            + " image_encoded: true } transform_param { scale: 0.0039 } }\n" + rest);
  }

  private static byte[] png(int size, byte[] pixels) throws IOException {
    BufferedImage image = new BufferedImage(size, size, BufferedImage.TYPE_BYTE_GRAY);
    image.getRaster().setDataElements(0, 0, size, size, pixels);
    ByteArrayOutputStream file = new ByteArrayOutputStream();
    ImageIO.write(image, "png", file);
    return file.toByteArray();
  }
}
