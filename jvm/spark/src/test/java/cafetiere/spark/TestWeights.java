// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.core.net.Layer;
import cafetiere.core.net.Net;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Weights of a model: its bytes have the net's text in them, too. */
public final class TestWeights {
  private TestWeights() {}

  /** A caffemodel of what a net begins with. */
  public static byte[] initial(String prototxt) {
    try (Net net = Net.of(prototxt, "TEST")) {
      Path file = Files.createTempFile("weights", ".caffemodel");
      net.save(file.toString());
      byte[] weights = Files.readAllBytes(file);
      Files.delete(file);
      return weights;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Of each parameter, in the order of the net. */
  public static List<FloatBuffer> of(CaffeModel model) {
    try (Net net = Net.of(model.getNet(), "TEST")) {
      Path file = Files.createTempFile("weights", ".caffemodel");
      Files.write(file, model.weights());
      net.copyFrom(file.toString());
      Files.delete(file);
      List<FloatBuffer> weights = new ArrayList<>();
      for (Layer layer : net.layers()) {
        for (int number : layer.params()) {
          FloatBuffer values = net.param(number).data().asFloatBuffer();
          weights.add(FloatBuffer.allocate(values.remaining()).put(values).flip());
        }
      }
      if (weights.isEmpty()) throw new IllegalArgumentException("the net has no weights");
      return weights;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
