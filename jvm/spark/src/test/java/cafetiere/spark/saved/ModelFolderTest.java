// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.saved;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.BothLines;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.TestImages;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@BothLines
class ModelFolderTest {
  private static final String COMPRESS = "mapreduce.output.fileoutputformat.compress";

  @TempDir Path dir;
  private final SparkSession spark = TestImages.session();
  private final Configuration conf = spark.sparkContext().hadoopConfiguration();

  @AfterEach
  void reset() {
    conf.unset(COMPRESS);
    conf.unset(COMPRESS + ".codec");
  }

  /** Saved where a cluster compresses all that is written. */
  @Test
  void theParamsMayBeCompressed() throws Exception {
    for (String codec : List.of("DefaultCodec", "GzipCodec", "BZip2Codec")) {
      conf.set(COMPRESS, "true");
      conf.set(COMPRESS + ".codec", "org.apache.hadoop.io.compress." + codec);
      String path = dir.resolve(codec).toString();
      new CaffeEstimator().setNet("name: 'a'").write().save(path);
      assertEquals("name: 'a'", new ModelFolder(path).params(conf).path("net").asText());
      try (Stream<Path> files = Files.list(dir.resolve(codec + "/metadata"))) {
        assertTrue(files.anyMatch(file -> file.toString().matches(".*/part-.*\\.(deflate|gz|bz2)")), codec);
      }
    }
  }
}
