// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.feed;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.List;
import org.apache.spark.ml.linalg.DenseVector;
import org.apache.spark.ml.linalg.SparseVector;
import org.apache.spark.ml.linalg.Vector;
import org.apache.spark.sql.Row;
import org.apache.spark.unsafe.Platform;

/** Encodes the values of external rows that are more than a number. */
final class ExternalValues {
  private ExternalValues() {}

  static void string(Row row, int ordinal, Chunk out) {
    out.bytes(row.getString(ordinal).getBytes(UTF_8));
  }

  static void binary(Row row, int ordinal, Chunk out) {
    out.bytes(row.<byte[]>getAs(ordinal));
  }

  static void vector(Row row, int ordinal, Chunk out) {
    Vector vector = row.getAs(ordinal);
    if (vector instanceof DenseVector dense) {
      out.bytes(dense.values(), Platform.DOUBLE_ARRAY_OFFSET,
          (long) dense.size() * Double.BYTES);
      return;
    }
    SparseVector sparse = (SparseVector) vector;
    long bytes = (long) sparse.size() * Double.BYTES;
    long to = out.payload(bytes);
    Platform.setMemory(to, (byte) 0, bytes);
    int[] indices = sparse.indices();
    for (int i = 0; i < indices.length; i++) {
      Platform.putDouble(null, to + (long) indices[i] * Double.BYTES, sparse.values()[i]);
    }
  }

  static void image(Row row, int ordinal, Chunk out) {
    Row image = row.getStruct(ordinal);
    if (image.isNullAt(5)) {
      throw new IllegalArgumentException("holds an image without data: read with dropInvalid");
    }
    UnsafeValues.planar(image.getInt(1), image.getInt(2), image.getInt(3),
        image.<byte[]>getAs(5), out);
  }

  static void sizedImage(Row row, int ordinal, Chunk out) {
    Row image = row.getStruct(ordinal);
    if (image.isNullAt(0)) throw new IllegalArgumentException("holds no image: drop the row");
    out.bytes(image.<byte[]>getAs(0));
  }

  /** A writer of arrays whose elements, of `width` bytes, `put` writes to native memory. */
  static <T> ColumnType.RowWriter array(int width, Put<T> put) {
    return (row, ordinal, out) -> {
      List<T> values = row.getList(ordinal);
      long to = out.payload((long) values.size() * width);
      for (int i = 0; i < values.size(); i++, to += width) {
        T value = values.get(i);
        if (value == null) throw UnsafeValues.nullElement(i);
        put.at(to, value);
      }
    };
  }

  /** Writes one number to native memory. */
  interface Put<T> {
    void at(long address, T value);
  }
}
