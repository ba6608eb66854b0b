// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.net;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.CafetiereException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Nets on memory that Java sees. */
class NetTest {
  static final String NET = "name: 'two' layer { name: 'in' type: 'Input' top: 'data' top: 'aim'"
      + " input_param { shape { dim: 2 dim: 3 } shape { dim: 2 dim: 4 } } }"
      + " layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'"
      + " inner_product_param { num_output: 4 weight_filler { type: 'xavier' } } }"
      + " layer { name: 'act' type: 'TanH' bottom: 'ip' top: 'act' }"
      + " layer { name: 'loss' type: 'EuclideanLoss' bottom: 'act' bottom: 'aim' top: 'loss' }";
  private static final String FED = "layer { name: 'in' type: 'MemoryData' top: 'data' top: 'label'"
      + " memory_data_param { batch_size: 2 channels: 1 height: 1 width: 2 } }";

  @TempDir
  Path folder;

  @Test
  void gradientsAreThoseOfTheDifferences() {
    try (Net net = Net.of(NET, "TRAIN")) {
      fill(net, 0);
      net.clearParamDiffs();
      net.forward();
      net.backward();
      FloatBuffer weights = net.param(0).data().asFloatBuffer();
      FloatBuffer gradient = net.param(0).diff().asFloatBuffer();
      assertEquals(12, weights.capacity());
      for (int i = 0; i < weights.capacity(); ++i) {
        float step = 1e-2f;
        float value = weights.get(i);
        weights.put(i, value + step);
        float above = net.forward();
        weights.put(i, value - step);
        float below = net.forward();
        weights.put(i, value);
        assertEquals((above - below) / (2 * step), gradient.get(i), 2e-3, "weight " + i);
      }
    }
  }

  @Test
  void structureAndShapes() {
    try (Net net = Net.of(NET, "TEST")) {
      assertEquals("two", net.name());
      assertEquals(List.of("in", "ip", "act", "loss"),
          net.layers().stream().map(Layer::name).toList());
      Layer ip = net.layers().get(1);
      assertEquals(List.of("data"), ip.bottoms().stream().map(net.blobNames()::get).toList());
      assertArrayEquals(new long[] {4, 3}, net.param(ip.params().get(0)).shape());
      assertArrayEquals(new long[0], net.blob("loss").shape());
      assertEquals(List.of("loss"), net.outputs().stream().map(net.blobNames()::get).toList());
      assertEquals(2, net.inputs().size());
      net.reshape("data", 5, 3);
      net.reshape("aim", 5, 4);
      net.reshape();
      assertArrayEquals(new long[] {5, 4}, net.blob("act").shape());
      assertTrue(net.describe().contains("\"EuclideanLoss\""));
    }
  }

  @Test
  void weightsAreSavedLoadedAndShared() {
    try (Net net = Net.of(NET, "TRAIN"); Net other = Net.of(NET, "TRAIN"); Net third =
        Net.of(NET, "TEST")) {
      FloatBuffer weights = net.param(0).data().asFloatBuffer();
      weights.put(0, 7.5f);
      for (String file : List.of("w.caffemodel", "w.caffemodel.h5")) {
        String path = folder.resolve(file).toString();
        net.save(path);
        other.param(0).data().asFloatBuffer().put(0, 0f);
        other.copyFrom(path);
        assertEquals(weights, other.param(0).data().asFloatBuffer(), file);
      }
      third.shareWith(net);
      weights.put(1, -3f);
      assertEquals(-3f, third.param(0).data().asFloatBuffer().get(1));
      assertNotEquals(-3f, other.param(0).data().asFloatBuffer().get(1));
    }
  }

  @Test
  void memoryOutlivesTheNetAndAMovedBlob() {
    Net net = Net.of(NET, "TRAIN");
    ByteBuffer values = net.param(0).data();
    FloatBuffer before = net.blob("data").data().asFloatBuffer();
    before.put(0, 2f);
    net.reshape("data", 4000, 3);
    net.reshape("aim", 4000, 4);
    net.reshape();
    net.close();
    for (int i = 0; i < 3; ++i) {
      System.gc();
      values.asFloatBuffer().put(0, i);
      assertEquals(2f, before.get(0));
    }
    assertThrows(IllegalStateException.class, net::forward);
    assertThrows(IllegalStateException.class, () -> net.blob(0));
    net.close();
  }

  @Test
  void memoryDataReadsTheCallersRows() {
    ByteBuffer data = floats(8);
    ByteBuffer labels = floats(4);
    try (Net net = Net.of(FED, "TEST")) {
      for (int i = 0; i < 8; ++i) {
        data.asFloatBuffer().put(i, i);
      }
      net.setInput("in", data, labels, 4);
      net.forward();
      assertEquals(3f, net.blob("data").data().asFloatBuffer().get(3));
      net.forward();
      assertEquals(4f, net.blob("data").data().asFloatBuffer().get(0));
      assertThrows(IllegalArgumentException.class, () -> net.setInput("in", data, labels, 6));
      assertThrows(IllegalArgumentException.class, () -> net.setInput("in", data, labels, -2));
      assertThrows(IllegalArgumentException.class,
          () -> net.setInput("in", ByteBuffer.allocate(32), labels, 4));
      assertThrows(CafetiereException.class, () -> net.setInput("in", data, labels, 3));
      assertThrows(CafetiereException.class, () -> net.setInput("out", data, labels, 4));
    }
  }

  @Test
  void whatMakesNoSenseIsAnError() {
    assertTells("net:1:9", () -> Net.of("layer { tipe: 'x' }", "TEST"));
    assertTells("phase must be TRAIN or TEST", () -> Net.of(NET, "\"\\\u0001"));
    try (Net net = Net.of(NET, "TEST")) {
      assertTells("no blob 'dat'", () -> net.blob("dat"));
      assertTells("no number", () -> net.blob(-1));
      assertTells("no number", () -> net.param(Integer.MAX_VALUE));
      assertTells("not within", () -> net.forward(-1, 9));
      assertTells("not within", () -> net.backward(9, -1));
      assertThrows(CafetiereException.class, () -> net.reshape("data", Long.MAX_VALUE, 3));
      assertThrows(CafetiereException.class, () -> net.reshape("data", -1));
      assertThrows(CafetiereException.class, () -> net.copyFrom("/no/such/file"));
      assertThrows(CafetiereException.class, () -> net.save("/no/such/folder/x"));
    }
    assertTells("is NULL", () -> NativeNet.forward(0, 0, 0));
    assertTells("is NULL", () -> NativeNet.solverStep(0, 1));
  }

  static void assertTells(String words, org.junit.jupiter.api.function.Executable call) {
    CafetiereException e = assertThrows(CafetiereException.class, call);
    assertTrue(e.getMessage().contains(words), e.getMessage());
  }

  /** Inputs that follow from a number. */
  static void fill(Net net, int number) {
    for (int input : net.inputs()) {
      FloatBuffer values = net.blob(input).data().asFloatBuffer();
      for (int i = 0; i < values.capacity(); ++i) {
        values.put(i, (float) Math.sin(i * 3 + input + 5 * number));
      }
    }
  }

  private static ByteBuffer floats(int count) {
    return ByteBuffer.allocateDirect(count * Float.BYTES).order(ByteOrder.nativeOrder());
  }
}
