// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import java.io.Serializable;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** The columns that a model adds to a table, and how they are made of what its net computes. */
public interface OutputColumns extends Serializable {
  /** A table's schema with them; refuses names that it has already. */
  StructType append(StructType schema);

  /** Their values for a row, of the floats of each output; null for a row that cannot be fed. */
  InternalRow row(float[][] outputs);

  /** A table's schema with one more column of that name, which is not null, unless the name is "". */
  static StructType add(StructType schema, String name, String param, DataType type) {
    if (name.isEmpty()) return schema;
    requireNew(schema, name, param);
    return schema.add(name, type, false);
  }

  /** A dense vector of Spark ML in Spark's internal form. */
  static InternalRow vector(float[] values) {
    double[] doubles = new double[values.length];
    for (int i = 0; i < values.length; i++) doubles[i] = values[i];
    return new GenericInternalRow(
        new Object[] {(byte) 1, null, null, UnsafeArrayData.fromPrimitiveArray(doubles)});
  }

  /** Refuses a name that the table has already; {@code param} is the one that gives it. */
  static void requireNew(StructType schema, String name, String param) {
    if (Arrays.asList(schema.fieldNames()).contains(name)) {
      throw new IllegalArgumentException("the table has a column '" + name + "' already, which "
          + param + " would add: rename the column, or set " + param);
    }
  }
}
