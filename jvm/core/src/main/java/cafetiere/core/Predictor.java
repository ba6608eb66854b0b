// SPDX-License-Identifier: Apache-2.0
package cafetiere.core;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** A net with its weights, ready to compute blobs for rows. */
public final class Predictor extends Handle {
  /** Makes a predictor; `options` is the JSON that cft_predictor_create describes. */
  public Predictor(String options, byte[] model) {
    this(create(options, model));
  }

  private Predictor(long address) {
    super(address, Native::predictorDestroy);
  }

  /** A further predictor with the same options, which shares this one's weights; for any thread. */
  public Predictor share() {
    return call(predictor -> new Predictor(Native.predictorShare(predictor)));
  }

  /** The next rows are like the first of a new predictor: recurrent layers begin with zeros. */
  public void reset() {
    run(Native::predictorReset);
  }

  /** The outputs, as JSON: names, shapes without the batch axis, floats a row. */
  public String describe() {
    return call(predictor -> Native.text(Native.predictorDescribe(predictor)));
  }

  /**
   * Computes the outputs of `count` rows that lie encoded in native memory, as for Rows.append.
   * outputs[i] is a direct buffer from allocate(); it receives count times its size in floats.
   */
  public void run(long count, long address, long bytes, ByteBuffer[] outputs) {
    run(predictor -> Native.predictorRun(predictor, count, address, bytes, outputs));
  }

  /** A buffer that run() can fill with `floats` values. */
  public static ByteBuffer allocate(long floats) {
    return direct(floats * Float.BYTES);
  }

  private static long create(String options, byte[] model) {
    NativeLibrary.load();
    return Native.predictorCreate(Native.utf8(options), model);
  }

  /** A direct buffer in the machine's byte order. */
  private static ByteBuffer direct(long bytes) {
    if (bytes > Integer.MAX_VALUE) {
      throw new IllegalArgumentException(
          "a batch needs " + bytes + " bytes, more than a buffer holds: predict fewer rows"
              + " at a time");
    }
    return ByteBuffer.allocateDirect((int) bytes).order(ByteOrder.nativeOrder());
  }
}
