// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.score;

import java.nio.ByteBuffer;

/** The JNI functions of a scorer, which is a cft_predictor of one column and one output. */
final class NativeScorer {
  private NativeScorer() {}

  /**
   * Texts are UTF-8; an output that is empty is the one that the net ends in; {@code meanFiles} are names,
   * each with its bytes in base64 behind it; {@code columns} too, each with its type, and none where rows
   * are floats alone.
   */
  static native long create(byte[] net, byte[] weights, byte[] output, int batch,
      byte[][] meanFiles, byte[][] columns);

  static native long share(long scorer);

  /** Floats a row of the output; -1 if there are several. */
  static native long size(long scorer);

  static native void score(long scorer, int count, float[] rows, float[] scores);

  /** A row that lies encoded at the begin of a direct buffer, as cft_rows_append wants it. */
  static native void scoreEncoded(long scorer, ByteBuffer row, int bytes, float[] scores);

  static native void destroy(long scorer);
}
