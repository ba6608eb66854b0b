// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.table;

/** The JNI functions of libcafetiere.so for tables; texts are UTF-8. */
final class NativeTable {
  private NativeTable() {}

  static native long create(byte[] options);

  static native void add(long table, long count, long address, long bytes);

  static native void merge(long table, byte[] statistics);

  static native byte[] statistics(long table);

  static native byte[] net(long table, byte[] options);

  static native void destroy(long table);

  static native long keyedCreate(byte[] options);

  static native void keyedAdd(long keyed, long count, long address, long bytes);

  static native void keyedTrain(long keyed, double[] figures, byte[][] parts);

  static native void keyedDrop(long keyed);

  static native void keyedCancel(long keyed);

  static native void keyedDestroy(long keyed);
}
