// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import java.io.Serializable;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/** The columns that a model adds to a table, and how they are made of what its net computes. */
public interface OutputColumns extends Serializable {
  /** A table's schema with them; refuses names that it has already. */
  StructType append(StructType schema);

  /** Their values for a row, of the floats of each output; null for a row that cannot be fed. */
  InternalRow row(float[][] outputs);

  /** Refuses a name that the table has already; {@code param} is the one that gives it. */
  static void requireNew(StructType schema, String name, String param) {
    if (Arrays.asList(schema.fieldNames()).contains(name)) {
      throw new IllegalArgumentException("the table has a column '" + name + "' already, which "
          + param + " would add: rename the column, or set " + param);
    }
  }
}
