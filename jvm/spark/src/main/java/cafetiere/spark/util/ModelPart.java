// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.SparkSession;

/**
 * Weights or a solver state: bytes in memory, or a file that has to stay where it is for as long as
 * this is used.
 *
 * @param bytes in the binary form or as HDF5; empty of a file
 * @param path of the file, for Hadoop; "" of bytes
 */
public record ModelPart(byte[] bytes, String path) implements Serializable {
  private static final long serialVersionUID = 1L;
  public static final String LARGEST = "spark.cafetiere.largestModel";

  public static ModelPart of(byte[] bytes) {
    return new ModelPart(bytes, "");
  }

  public static ModelPart ofFile(String path) {
    return new ModelPart(new byte[0], path);
  }

  /** A file's bytes, unless there are more than {@link #largest}. */
  public static ModelPart read(String path, SparkSession spark) {
    Configuration conf = spark.sparkContext().hadoopConfiguration();
    return HadoopFiles.length(path, conf) > largest(spark)
        ? ofFile(path) : of(HadoopFiles.read(path, conf));
  }

  /**
   * More bytes are handed on as files: drivers and tasks hold bytes several times, and an array ends
   * at 2 GiB.
   */
  public static long largest(SparkSession spark) {
    return JavaUtils.byteStringAsBytes(spark.conf().get(LARGEST, "1g"));
  }

  public boolean isFile() {
    return !path.isEmpty();
  }

  /** Writes it to a Hadoop path, replacing what is there. */
  public void write(String to, Configuration conf) {
    if (isFile()) {
      HadoopFiles.copy(path, to, conf);
    } else {
      HadoopFiles.write(to, bytes, conf);
    }
  }

  /** Writes it to a file of this machine, and returns that. */
  public Path fetch(Path to, Configuration conf) throws IOException {
    if (isFile()) {
      HadoopFiles.fetch(path, to, conf);
    } else {
      Files.write(to, bytes);
    }
    return to;
  }

  /** What tells it from another one. */
  public ObjectNode toJson() {
    return Json.object().put("bytes", bytes).put("path", path);
  }
}
