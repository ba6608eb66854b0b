// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.plan;

import cafetiere.core.CafetiereException;
import cafetiere.core.Engine;
import cafetiere.spark.PreflightException;
import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.ModelPart;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.sql.SparkSession;

/**
 * The layers that the param net names: prototxt, or an ONNX file, whose weights are where a training starts.
 *
 * @param net prototxt
 * @param file of the weights on this machine, until this is closed; null without any
 */
public record GivenNet(String net, Path file) implements AutoCloseable {
  private static final String ONNX = ".onnx";

  /** What {@code param} says, a prototxt or the Hadoop path of an ONNX file. */
  public static GivenNet of(String param, SparkSession spark) {
    if (!param.trim().endsWith(ONNX)) return new GivenNet(param, null);
    Engine.NetWithWeights read = read(param.trim(), spark);
    if (read.weights().length > ModelPart.largest(spark)) { // they would be a file, which no executor reaches
      throw new PreflightException(List.of("net is " + param.trim() + ", whose weights have "
          + read.weights().length + " bytes, more than " + ModelPart.LARGEST + ": raise it"));
    }
    try {
      Path file = Files.createTempFile("cafetiere-net", ".caffemodel");
      Files.write(file, read.weights());
      return new GivenNet(read.net(), file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Engine.NetWithWeights read(String path, SparkSession spark) {
    byte[] file = HadoopFiles.read(path, spark.sparkContext().hadoopConfiguration());
    try {
      return Engine.ofOnnx(file);
    } catch (CafetiereException e) {
      throw new CafetiereException(e.code(), path + ": " + e.getMessage(), e);
    }
  }

  /** The param weights of an estimator: a path, or "". */
  public String weights() {
    return file == null ? "" : HadoopFiles.ofLocal(file);
  }

  @Override
  public void close() {
    try {
      if (file != null) Files.deleteIfExists(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
