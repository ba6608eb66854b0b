// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.score;

import static java.nio.charset.StandardCharsets.UTF_8;

import cafetiere.core.Handle;
import cafetiere.core.NativeLibrary;
import java.io.IOException;
import java.lang.ref.Reference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.Map;
import java.util.stream.Stream;

/**
 * A trained net that scores rows of floats one by one, in any JVM from 17 on, without Spark.
 *
 * <pre>{@code
 * try (Scorer lenet = Scorer.open(Path.of("lenet.prototxt"), Path.of("lenet.caffemodel"), "prob")) {
 *   float[] scores = new float[lenet.size()];
 *   lenet.score(pixels, scores);
 * }
 * }</pre>
 *
 * <p>The row feeds the first top of the net's data layer, of several layers that of the first with two
 * tops, which scales and crops it as in training; other tops, such as a label, read zeros. A call
 * allocates nothing on the Java heap. One thread at a time: {@link #share} gives each further thread a
 * scorer of its own, with the same weights in memory.
 */
public final class Scorer extends Handle {
  private final int size;

  /**
   * A scorer with a batch of one row.
   *
   * @param net text of a prototxt, of a training net or one that is deployed
   * @param weights a caffemodel
   * @param output the blob that is the row's score; "" if the net ends in one alone
   */
  public Scorer(String net, byte[] weights, String output) {
    this(net, weights, output, 1);
  }

  /**
   * The same with another batch: rows are computed so many at a time. Convolutions may add in another
   * order for another batch; with that of a {@code CaffeModel} the bits are those of its transform.
   *
   * @param batch rows; 0 for the net's own
   */
  public Scorer(String net, byte[] weights, String output, int batch) {
    this(net, weights, output, batch, Map.of());
  }

  /**
   * The same with mean files that are no files of this machine.
   *
   * @param meanFiles their bytes, by the names that the net's {@code mean_file} fields have for them; what
   *     is not among them is read as a file
   */
  public Scorer(
      String net, byte[] weights, String output, int batch, Map<String, byte[]> meanFiles) {
    this(create(net, weights, output, batch, meanFiles));
  }

  private Scorer(long address) {
    super(address, NativeScorer::destroy);
    try {
      size = requireOneOutput(address);
    } catch (RuntimeException e) {
      close();
      throw e;
    }
  }

  /** A scorer with the net and the weights in these files of this machine. */
  public static Scorer open(Path net, Path weights, String output) throws IOException {
    return new Scorer(Files.readString(net), Files.readAllBytes(weights), output);
  }

  /** A further scorer, for another thread, which shares this one's weights; either may be closed first. */
  public Scorer share() {
    return call(scorer -> new Scorer(NativeScorer.share(scorer)));
  }

  /** Floats of a row's score. */
  public int size() {
    return size;
  }

  /**
   * Scores a row.
   *
   * @param row the values of the net's input
   * @param score receives {@link #size} floats
   */
  public void score(float[] row, float[] score) {
    score(1, row, score);
  }

  /** Scores {@code count} rows that lie one after another; so do the scores. */
  public void score(int count, float[] rows, float[] scores) {
    try {
      NativeScorer.score(handle(), count, rows, scores);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  static int requireOneOutput(long address) {
    long size = NativeScorer.size(address);
    if (size >= 0) return Math.toIntExact(size);
    throw new IllegalArgumentException(
        "the net ends in several blobs: name the one that is the score");
  }

  private static long create(
      String net, byte[] weights, String output, int batch, Map<String, byte[]> meanFiles) {
    NativeLibrary.load();
    byte[][] named = meanFiles.entrySet().stream()
        .flatMap(file -> Stream.of(
            file.getKey().getBytes(UTF_8), Base64.getEncoder().encode(file.getValue())))
        .toArray(byte[][]::new);
    return NativeScorer.create(
        net.getBytes(UTF_8), weights, output.getBytes(UTF_8), batch, named, new byte[0][]);
  }
}
