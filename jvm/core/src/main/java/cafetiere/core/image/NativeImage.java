// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.image;

import java.nio.ByteBuffer;

/** The JNI functions of libcafetiere.so for images, in the manner of {@code cafetiere.core.Native}. */
final class NativeImage {
  private NativeImage() {}

  /** The pixels; fills {@code sizes} with height, width and channels. */
  static native byte[] decode(byte[] file, byte[] color, int[] sizes);

  static native byte[] resize(
      byte[] pixels, int height, int width, int channels, int toHeight, int toWidth);

  static native long transformerCreate(byte[] options);

  /** Fills {@code count} floats of a direct buffer, which has them behind {@code offset}. */
  static native void transformerRun(long transformer, byte[] pixels, int height, int width,
      int channels, long number, ByteBuffer out, int offset, int count);

  static native void transformerDestroy(long transformer);
}
