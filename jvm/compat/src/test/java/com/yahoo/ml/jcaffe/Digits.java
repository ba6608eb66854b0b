// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.jcaffe;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;

/** Drawn images of 28 x 28 pixels in ten classes, and LeNet for them. */
final class Digits {
  static final int BATCH = 16;
  private static final int SIZE = 28;

  private final Random random;

  Digits(long seed) {
    random = new Random(seed);
  }

  /** A solver's file and its net's, whose first layer is given. */
  static String solver(Path folder, String source, String more) throws IOException {
    Path net = folder.resolve("net.prototxt");
    Files.writeString(net, "name: 'LeNet' " + source
        + convolution("conv1", "data", 20) + pooling("pool1", "conv1")
        + convolution("conv2", "pool1", 50) + pooling("pool2", "conv2")
        + product("ip1", "pool2", 100)
        + "layer { name: 'relu1' type: 'ReLU' bottom: 'ip1' top: 'ip1' }"
        + product("ip2", "ip1", 10)
        + "layer { name: 'accuracy' type: 'Accuracy' bottom: 'ip2' bottom: 'label'"
        + " top: 'accuracy' include { phase: TEST } }"
        + "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip2' bottom: 'label'"
        + " top: 'loss' }");
    Path solver = folder.resolve("solver.prototxt");
    Files.writeString(solver, "net: '" + net + "' base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed'"
        + " max_iter: 2000 test_iter: 10 test_interval: 100 random_seed: 7 snapshot_prefix: '"
        + folder.resolve("lenet") + "' " + more);
    return solver.toString();
  }

  static String memoryData() {
    return "layer { name: 'data' type: 'MemoryData' top: 'data' top: 'label' memory_data_param {"
        + " batch_size: " + BATCH + " channels: 1 height: 28 width: 28 } }";
  }

  static String cosData() {
    return "layer { name: 'data' type: 'CoSData' top: 'data' top: 'label' cos_data_param {"
        + " batch_size: " + BATCH + " top { name: 'data' type: FLOAT_ARRAY channels: 1 height: 28"
        + " width: 28 sample_num_axes: 3 } top { name: 'label' type: INT channels: 1"
        + " sample_num_axes: 0 } } }";
  }

  /** A batch: a bar whose place and slope the class decides, with noise. */
  FloatBlob[] batch() {
    FloatBlob data = new FloatBlob();
    FloatBlob label = new FloatBlob();
    data.reshape(BATCH, 1, SIZE, SIZE);
    label.reshape(BATCH, 1, 1, 1);
    for (int i = 0; i < BATCH; ++i) {
      int digit = random.nextInt(10);
      label.cpu_data().set(i, digit);
      for (int y = 0; y < SIZE; ++y) {
        for (int x = 0; x < SIZE; ++x) {
          int along = digit % 2 == 0 ? x : (x + y) / 2;
          boolean ink = along / 5 == digit / 2;
          data.cpu_data().set((i * SIZE + y) * SIZE + x,
              (ink ? 0.8f : 0) + 0.1f * random.nextFloat());
        }
      }
    }
    return new FloatBlob[] {data, label};
  }

  private static String convolution(String name, String bottom, int outputs) {
    return "layer { name: '" + name + "' type: 'Convolution' bottom: '" + bottom + "' top: '" + name
        + "' convolution_param { num_output: " + outputs + " kernel_size: 5"
        + " weight_filler { type: 'xavier' } } }";
  }

  private static String pooling(String name, String bottom) {
    return "layer { name: '" + name + "' type: 'Pooling' bottom: '" + bottom + "' top: '" + name
        + "' pooling_param { kernel_size: 2 stride: 2 } }";
  }

  private static String product(String name, String bottom, int outputs) {
    return "layer { name: '" + name + "' type: 'InnerProduct' bottom: '" + bottom + "' top: '" + name
        + "' inner_product_param { num_output: " + outputs
        + " weight_filler { type: 'xavier' } } }";
  }
}
