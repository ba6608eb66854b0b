// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.submit;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import cafetiere.spark.BothLines;
import cafetiere.spark.Submit;
import cafetiere.spark.TestImages;
import cafetiere.spark.plan.NetDescription;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** CaffeOnSpark's source class LMDB on the command line. */
@BothLines
class LmdbSourceTest {
  private static final int ROWS = 500;

  @TempDir static Path dir;
  private static SparkSession spark;

  @BeforeAll
  static void writeTables() throws IOException {
    spark = TestImages.session();
    Dataset<Row> images = TestImages.images(spark, ROWS).selectExpr("cast(id as string) id",
        "label", "1 channels", "28 height", "28 width", "false encoded", "image data");
    images.write().parquet(uri("images.parquet"));
    images.coalesce(1).write().format("lmdb").save(uri("images_lmdb"));
    Files.writeString(dir.resolve("solver.prototxt"), TestImages.solver(8) + " net: 'lenet'");
    Files.writeString(dir.resolve("lenet"), net(uri("images_lmdb")));
  }

  @Test
  void theNetsSourceTrainsLikeTheSameRowsOfATable() throws IOException {
    assertArrayEquals(train("table", "-trainData", uri("images.parquet")),
        train("source", "-lmdb_partitions", "5"));
  }

  @Test
  void thereAreAsManyRangesAsTheFlagSays() {
    String[] flags = {"-conf", "s", "-test", "-model", "m", "-lmdb_partitions", "5"};
    Dataset<Row> rows = open(net(uri("images_lmdb")), flags).rows();
    assertEquals(5, rows.rdd().getNumPartitions());
    assertEquals(ROWS, rows.select("id").distinct().count());
  }

  @Test
  void aFlagMayNameADatabase() {
    String[] flags =
        {"-conf", "s", "-test", "-model", "m", "-testData", uri("images_lmdb")};
    assertEquals("id", open(net("nowhere"), flags).idColumn());
  }

  @Test
  void aDatabaseOfNumbersFeedsThem() {
    String path = uri("numbers_lmdb");
    spark.range(0, 1, 1, 1).selectExpr("1 channels", "1 height", "1 width",
        "array(cast(0.5 as float)) float_data").write().format("lmdb").save(path);
    assertEquals("float_data",
        open(net(path), "-conf", "s", "-test", "-model", "m").dataColumn());
  }

  private static byte[] train(String name, String... more) throws IOException {
    List<String> flags = new ArrayList<>(List.of("-conf", dir.resolve("solver.prototxt").toString(),
        "-net", dir.resolve("lenet").toString(), "-train", "-clusterSize", "2", "-model",
        uri(name)));
    flags.addAll(List.of(more));
    Submit.run(spark, flags.toArray(new String[0]));
    return Files.readAllBytes(dir.resolve(name));
  }

  private static NetTable open(String net, String... flags) {
    NetDescription description = NetDescription.of("", net, "TEST");
    return NetTable.open(spark, Flags.parse(flags), description, net, "testData");
  }

  private static String net(String source) {
    return TestImages.lenet().replace("memory_data_param {",
        "source_class: 'com.yahoo.ml.caffe.LMDB' memory_data_param { source: '" + source + "'");
  }

  private static String uri(String name) {
    return dir.resolve(name).toUri().toString();
  }
}
