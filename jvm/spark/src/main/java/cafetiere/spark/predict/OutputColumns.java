// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import cafetiere.spark.internal.SparkInternals;
import java.io.Serializable;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.ml.attribute.AttributeGroup;
import org.apache.spark.ml.linalg.SQLDataTypes;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructType;

/** The columns that a model adds to a table, and how they are made of what its net computes. */
public interface OutputColumns extends Serializable {
  /** A table's schema with them; refuses names that it has already. On the driver. */
  StructType append(StructType schema);

  /** Their values for a row, of the floats of each output; null for a row that cannot be fed. */
  InternalRow row(float[][] outputs);

  /** A dense vector of Spark ML in Spark's internal form. */
  static InternalRow vector(float[] values) {
    double[] doubles = new double[values.length];
    for (int i = 0; i < values.length; i++) doubles[i] = values[i];
    return new GenericInternalRow(
        new Object[] {(byte) 1, null, null, UnsafeArrayData.fromPrimitiveArray(doubles)});
  }

  /** A table's schema to which columns are added; names are compared as the session compares them. */
  final class Appended {
    private final StructType table;
    private final boolean isCaseSensitive = SparkInternals.isCaseSensitive();
    private final Map<String, String> params = new LinkedHashMap<>();
    private StructType schema;

    /** To a table's schema. */
    public Appended(StructType table) {
      this.table = table;
      this.schema = table;
    }

    /** One more column, which is not null, of the name that a param gives; none if that is "". */
    public Appended add(String name, String param, DataType type) {
      return add(name, param, type, false);
    }

    /** The same of a column that may be null. */
    public Appended add(String name, String param, DataType type, boolean isNullable) {
      return add(name, param, type, isNullable, Metadata.empty());
    }

    /** One more column of vectors; their length is told in Spark ML's way if it is known, above 0. */
    public Appended addVectors(String name, String param, int length) {
      Metadata told = length == 0 || name.isEmpty() ? Metadata.empty()
          : new AttributeGroup(name, length).toMetadata();
      return add(name, param, SQLDataTypes.VectorType(), false, told);
    }

    private Appended add(
        String name, String param, DataType type, boolean isNullable, Metadata metadata) {
      if (name.isEmpty()) return this;
      requireNew(name, param);
      params.put(name, param);
      schema = schema.add(name, type, isNullable, metadata);
      return this;
    }

    /** The schema with the columns. */
    public StructType schema() {
      return schema;
    }

    private void requireNew(String name, String param) {
      for (String column : table.fieldNames()) {
        if (!isSame(column, name)) continue;
        throw new IllegalArgumentException("the table has a column '" + column + "' already, which "
            + param + " would add" + (column.equals(name) ? "" : " as '" + name + "'")
            + ": rename the column, or set " + param);
      }
      Optional<String> other = params.keySet().stream().filter(added -> isSame(added, name)).findFirst();
      if (other.isEmpty()) return;
      String first = params.get(other.get());
      throw new IllegalArgumentException(first.equals(param)
          ? param + " names '" + name + "' twice: take out one"
          : first + " and " + param + " both name the column '" + name
              + "': set one of them to another name");
    }

    private boolean isSame(String a, String b) {
      return isCaseSensitive ? a.equals(b) : a.equalsIgnoreCase(b);
    }
  }
}
