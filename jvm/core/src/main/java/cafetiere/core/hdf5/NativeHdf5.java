// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.hdf5;

/** The JNI functions of libcafetiere.so for HDF5. */
final class NativeHdf5 {
  private NativeHdf5() {}

  static native long open(byte[] path);

  static native byte[] shape(long hdf5, byte[] dataset);

  static native void read(long hdf5, byte[] dataset, long begin, float[] out);

  static native void close(long hdf5);
}
