// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * An array column for each output and then the prediction.
 *
 * @param names of the columns of the first outputs; further outputs have none
 * @param predictionCol its column, "" for none
 * @param isNullable whether they are null for rows that cannot be fed
 */
public record Outputs(List<String> names, String predictionCol, boolean isNullable)
    implements OutputColumns {
  private static final DataType OUTPUT = DataTypes.createArrayType(DataTypes.FloatType, false);

  /** As an interface: an older Java that verifies the caller need not load this class. */
  public static OutputColumns of(List<String> names, String predictionCol, boolean isNullable) {
    return new Outputs(names, predictionCol, isNullable);
  }

  @Override
  public StructType append(StructType schema) {
    Appended appended = new Appended(schema);
    for (String name : names) appended.add(name, "outputCols", OUTPUT, isNullable);
    return appended.add(predictionCol, "predictionCol", DataTypes.DoubleType, isNullable).schema();
  }

  @Override
  public InternalRow row(float[][] outputs) {
    Object[] cells = new Object[names.size() + (predictionCol.isEmpty() ? 0 : 1)];
    if (outputs == null) return new GenericInternalRow(cells);
    for (int i = 0; i < names.size(); i++) {
      cells[i] = UnsafeArrayData.fromPrimitiveArray(outputs[i]);
    }
    if (!predictionCol.isEmpty()) cells[names.size()] = prediction(outputs[0]);
    return new GenericInternalRow(cells);
  }

  /** The index of the largest value (the first of equal ones), NaN if one is; a single value itself. */
  static double prediction(float[] values) {
    if (values.length == 1) return values[0];
    int best = 0;
    for (int i = 0; i < values.length; i++) {
      if (Float.isNaN(values[i])) return Double.NaN;
      if (values[i] > values[best]) best = i;
    }
    return best;
  }
}
