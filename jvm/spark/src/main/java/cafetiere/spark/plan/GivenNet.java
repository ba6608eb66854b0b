// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.plan;

import cafetiere.core.Engine;
import cafetiere.spark.util.HadoopFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;

/**
 * The layers that the param net names: prototxt, or an ONNX file, whose weights are where a training starts.
 *
 * @param net prototxt
 * @param file of the weights on this machine, until this is closed; null without any
 */
public record GivenNet(String net, Path file) implements AutoCloseable {
  private static final String ONNX = ".onnx";

  /** What {@code param} says, a prototxt or the Hadoop path of an ONNX file. */
  public static GivenNet of(String param, Configuration conf) {
    if (!param.trim().endsWith(ONNX)) return new GivenNet(param, null);
    Engine.NetWithWeights read = Engine.ofOnnx(HadoopFiles.read(param.trim(), conf));
    try {
      Path file = Files.createTempFile("cafetiere-net", ".caffemodel");
      Files.write(file, read.weights());
      return new GivenNet(read.net(), file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
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
