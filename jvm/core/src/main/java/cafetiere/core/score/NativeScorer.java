// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.score;

/** The JNI functions of a scorer, which is a cft_predictor of one column and one output. */
final class NativeScorer {
  private NativeScorer() {}

  /**
   * Texts are UTF-8; an output that is empty is the one that the net ends in; {@code meanFiles} are names,
   * each with its bytes in base64 behind it.
   */
  static native long create(
      byte[] net, byte[] weights, byte[] output, int batch, byte[][] meanFiles);

  static native long share(long scorer);

  /** Floats a row of the output; -1 if there are several. */
  static native long size(long scorer);

  static native void score(long scorer, int count, float[] rows, float[] scores);

  static native void destroy(long scorer);
}
