// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import java.util.Arrays;
import org.apache.spark.ml.linalg.SQLDataTypes;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * Numbers that a net predicts for a row. A name that is "" has no column.
 *
 * @param prediction the column of the one at place {@code main}, or of the vector of all
 * @param all that of the vector of all beside it, or ""
 * @param main the place of the one that is the prediction, or -1 for all
 */
public record NumberColumns(String prediction, String all, int main) implements OutputColumns {
  /** A number, or several as a vector. */
  public static OutputColumns of(String prediction, boolean areSeveral) {
    return new NumberColumns(prediction, "", areSeveral ? -1 : 0);
  }

  /** A vector of quantiles, and as the prediction that of the one nearest to the median. */
  public static OutputColumns ofQuantiles(String prediction, String all, double[] quantiles) {
    int main = 0;
    for (int i = 1; i < quantiles.length; i++) {
      if (Math.abs(quantiles[i] - 0.5) < Math.abs(quantiles[main] - 0.5)) main = i;
    }
    return new NumberColumns(prediction, all, main);
  }

  @Override
  public StructType append(StructType schema) {
    return new Appended(schema)
        .add(prediction, "predictionCol", main < 0 ? SQLDataTypes.VectorType() : DataTypes.DoubleType)
        .add(all, "quantilesCol", SQLDataTypes.VectorType()).schema();
  }

  @Override
  public InternalRow row(float[][] outputs) {
    Object[] cells = new Object[2];
    int used = 0;
    if (!prediction.isEmpty()) {
      cells[used++] = main < 0 ? OutputColumns.vector(outputs[0]) : (double) outputs[0][main];
    }
    if (!all.isEmpty()) cells[used++] = OutputColumns.vector(outputs[0]);
    return new GenericInternalRow(Arrays.copyOf(cells, used));
  }
}
