// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** The columns that a model adds to a table. */
public final class Outputs {
  private static final DataType OUTPUT = DataTypes.createArrayType(DataTypes.FloatType, false);

  private Outputs() {}

  /**
   * The schema with one array column for each output and, unless it is "", the prediction.
   *
   * @param isNullable whether they are null for rows that cannot be fed
   */
  public static StructType append(
      StructType schema, List<String> outputs, String predictionCol, boolean isNullable) {
    StructType appended = schema;
    for (String output : outputs) {
      requireNew(appended, output, "outputCols");
      appended = appended.add(output, OUTPUT, isNullable);
    }
    if (!predictionCol.isEmpty()) {
      requireNew(appended, predictionCol, "predictionCol");
      appended = appended.add(predictionCol, DataTypes.DoubleType, isNullable);
    }
    return appended;
  }

  /** Their values for row {@code row} of the predictor's batch; nulls for -1, one that cannot be fed. */
  static InternalRow row(BatchPredictor predictor, int row, boolean predict) {
    int outputs = predictor.outputs();
    Object[] cells = new Object[outputs + (predict ? 1 : 0)];
    if (row < 0) return new GenericInternalRow(cells);
    for (int i = 0; i < outputs; i++) {
      float[] values = predictor.output(i, row);
      cells[i] = UnsafeArrayData.fromPrimitiveArray(values);
      if (predict && i == 0) cells[outputs] = prediction(values);
    }
    return new GenericInternalRow(cells);
  }

  /** The index of the largest value (the first of equal ones); a single value itself. */
  static double prediction(float[] values) {
    if (values.length == 1) return values[0];
    int best = 0;
    for (int i = 1; i < values.length; i++) {
      if (values[i] > values[best]) best = i;
    }
    return best;
  }

  private static void requireNew(StructType schema, String name, String param) {
    if (Arrays.asList(schema.fieldNames()).contains(name)) {
      throw new IllegalArgumentException("the table has a column '" + name + "' already, which "
          + param + " would add: rename the column, or set " + param);
    }
  }
}
