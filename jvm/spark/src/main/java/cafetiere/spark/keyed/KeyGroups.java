// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.keyed;

import cafetiere.spark.internal.SparkInternals;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** Rows whose first column is a key, those of a key one after another, read a row at a time. */
final class KeyGroups {
  private final Iterator<InternalRow> rows;
  private final UnsafeProjection binary;
  private final DataType keyType;
  private final UnsafeProjection keyOf;
  private final GenericInternalRow cell = new GenericInternalRow(1);
  private UnsafeRow row; // the next one, null at the end
  private UnsafeRow key; // of the rows that are read

  KeyGroups(StructType schema, Iterator<InternalRow> rows) {
    this.rows = rows;
    this.binary = SparkInternals.unsafeProjection(schema);
    this.keyType = schema.fields()[0].dataType();
    this.keyOf = SparkInternals.unsafeProjection(new StructType().add(schema.fields()[0]));
    advance();
  }

  /** Goes to the next key; false at the end. All rows of the one before have been read. */
  boolean nextKey() {
    if (row == null) return false;
    key = keyOfRow().copy();
    return true;
  }

  /** The key in Spark's internal form; may be null. */
  Object key() {
    return key.isNullAt(0) ? null : key.get(0, keyType);
  }

  /** Whether the key has a further row. */
  boolean hasRow() {
    return row != null && key != null && key.equals(keyOfRow());
  }

  /** That row, key and all; the next one will lie in its memory. */
  UnsafeRow row() {
    return row;
  }

  /** Done with that row. */
  void advance() {
    row = rows.hasNext() ? binary.apply(rows.next()) : null;
  }

  /** Lies in the memory of the one before. */
  private UnsafeRow keyOfRow() {
    cell.update(0, row.isNullAt(0) ? null : row.get(0, keyType));
    return keyOf.apply(cell);
  }
}
