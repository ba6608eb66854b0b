// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.internal;

import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;

/**
 * Where the values of Spark's binary rows lie, for the feed, which copies them without an object for
 * each. What it returns are offsets from the row's base object.
 */
public final class UnsafeLayout {
  /** The ordinal of a sparse vector's indices, an array of int. */
  public static final int VECTOR_INDICES = 2;
  /** The ordinal of a vector's values, an array of doubles. */
  public static final int VECTOR_VALUES = 3;

  private static final int VECTOR_FIELDS = 4;
  private static final int DENSE_VECTOR = 1;

  private UnsafeLayout() {}

  /** Where a string, binary value, array or struct begins: the upper half of its field. */
  public static long offset(UnsafeRow row, int ordinal) {
    return row.getBaseOffset() + (row.getLong(ordinal) >>> 32);
  }

  /** Its size in bytes: the lower half of its field. */
  public static int size(UnsafeRow row, int ordinal) {
    return (int) row.getLong(ordinal);
  }

  /** The number of elements of an array, which it begins with. */
  public static int elements(UnsafeRow row, int ordinal) {
    return (int) Platform.getLong(row.getBaseObject(), offset(row, ordinal));
  }

  /** Where its elements lie: after the count and a null bit for each. */
  public static long elementsOffset(UnsafeRow row, int ordinal) {
    return offset(row, ordinal)
        + UnsafeArrayData.calculateHeaderPortionInBytes(elements(row, ordinal));
  }

  /** The first element that is null; -1 for none. */
  public static long firstNull(UnsafeRow row, int ordinal) {
    Object base = row.getBaseObject();
    long first = offset(row, ordinal) + Long.BYTES;
    long end = elementsOffset(row, ordinal);
    for (long word = first; word < end; word += Long.BYTES) {
      long nulls = Platform.getLong(base, word);
      if (nulls != 0) return (word - first) * Byte.SIZE + Long.numberOfTrailingZeros(nulls);
    }
    return -1;
  }

  /** A Spark ML vector. */
  public static UnsafeRow vector(UnsafeRow row, int ordinal) {
    return row.getStruct(ordinal, VECTOR_FIELDS);
  }

  /** Whether a vector holds all of its values, and not those that are not zero. */
  public static boolean isDense(UnsafeRow vector) {
    return vector.getByte(0) == DENSE_VECTOR;
  }

  /** The length of a sparse vector. */
  public static int length(UnsafeRow vector) {
    return vector.getInt(1);
  }
}
