// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.jcaffe;

import caffe.Caffe.TransformationParameter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Measures how fast images are decoded, resized and transformed. */
public class Simulator {
  private static final int BATCH = 4;
  private static final int SIZE = 256;
  private static final int CROP = 227;

  private final Path root;
  private final int batches;

  Simulator(String rootPath, int batches) {
    root = Path.of(rootPath);
    this.batches = batches;
  }

  /**
   * Runs batches of images.
   *
   * @param args a folder with data/images/labels.txt, whose lines begin with a file's name, and the
   *     number of batches
   */
  public static void main(String[] args) throws IOException {
    long begun = System.nanoTime();
    Simulator simulator = new Simulator(args[0], Integer.parseInt(args[1]));
    simulator.run();
    double seconds = (System.nanoTime() - begun) / 1e9;
    System.out.printf("%d images in %.2f s, %.0f a second%n", simulator.batches * BATCH, seconds,
        simulator.batches * BATCH / seconds);
  }

  /** Transforms all batches; the last one. */
  FloatBlob run() throws IOException {
    Path images = root.resolve("data/images");
    List<String> lines = Files.readAllLines(images.resolve("labels.txt"));
    MatVector mats = new MatVector(BATCH);
    FloatBlob blob = new FloatBlob();
    blob.reshape(BATCH, 3, CROP, CROP);
    FloatDataTransformer transformer = new FloatDataTransformer(
        TransformationParameter.newBuilder().setCropSize(CROP).setMirror(true).build(), true);
    for (int i = 0; i < batches * BATCH; ++i) {
      String file = lines.get(i % lines.size()).split(" ")[0];
      Mat mat = new Mat(Files.readAllBytes(images.resolve(file)));
      mat.decode(Mat.CV_LOAD_IMAGE_COLOR);
      mat.resize(SIZE, SIZE);
      mats.put(i % BATCH, mat);
      if (i % BATCH == BATCH - 1) {
        transformer.transform(mats, blob);
      }
    }
    transformer.deallocate();
    return blob;
  }
}
