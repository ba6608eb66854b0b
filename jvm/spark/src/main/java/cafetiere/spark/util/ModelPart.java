// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

import com.esotericsoftware.kryo.DefaultSerializer;
import com.esotericsoftware.kryo.serializers.JavaSerializer;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
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
@DefaultSerializer(JavaSerializer.class) // Kryo cannot make a record
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
   * Weights that are copied one after another, from paths with commas between: what is in several has the
   * values of the last. In the binary form a message behind another one adds its layers to those.
   */
  public static ModelPart readInOrder(String paths, SparkSession spark) {
    String[] all = paths.split(",");
    if (all.length == 1) return read(paths, spark);
    ByteArrayOutputStream layers = new ByteArrayOutputStream();
    for (String path : all) {
      ModelPart part = read(path.trim(), spark);
      if (part.isFile() || isHdf5(part.bytes())) {
        throw new IllegalArgumentException(path.trim() + " is one of several weights and is "
            + (part.isFile() ? "larger than " + LARGEST : "HDF5") + ": give one file, or such in"
            + " Caffe's binary form, which `cafetiere convert_weights` writes");
      }
      layers.writeBytes(part.bytes());
    }
    return of(layers.toByteArray());
  }

  private static boolean isHdf5(byte[] bytes) {
    return bytes.length > 3 && new String(bytes, 1, 3, StandardCharsets.US_ASCII).equals("HDF");
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
