// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.predict;

import java.util.Arrays;
import java.util.stream.IntStream;
import org.apache.spark.ml.linalg.SQLDataTypes;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * What a classifier of several labels, each of which holds or does not, says of a row. A name that is ""
 * has no column.
 *
 * @param raw the column of the scores
 * @param probability that of the probabilities
 * @param prediction that of a 1 for each label that holds and a 0 for the others
 * @param label that of the places of those that hold, as Spark's MultilabelClassificationEvaluator takes
 *     them
 * @param thresholds above which probabilities hold, or none for 0.5
 */
public record LabelColumns(String raw, String probability, String prediction, String label,
    double[] thresholds) implements OutputColumns {
  private static final double EVEN = 0.5;

  /** Refuses thresholds unless there is one for each of the labels, 0 where these are not known yet. */
  public LabelColumns checked(int labels) {
    if (thresholds.length == 0 || labels == 0 || thresholds.length == labels) return this;
    throw new IllegalArgumentException("thresholds has " + thresholds.length + " numbers, and there"
        + " are " + labels + " labels: give one for each");
  }

  @Override
  public StructType append(StructType schema) {
    return new Appended(schema).add(raw, "rawPredictionCol", SQLDataTypes.VectorType())
        .add(probability, "probabilityCol", SQLDataTypes.VectorType())
        .add(prediction, "predictionCol", SQLDataTypes.VectorType())
        .add(label, "predictedLabelCol", DataTypes.createArrayType(DataTypes.DoubleType, false)).schema();
  }

  @Override
  public InternalRow row(float[][] outputs) {
    int[] places = IntStream.range(0, outputs[1].length).filter(i -> holds(outputs[1], i)).toArray();
    Object[] cells = new Object[4];
    int used = 0;
    if (!raw.isEmpty()) cells[used++] = OutputColumns.vector(outputs[0]);
    if (!probability.isEmpty()) cells[used++] = OutputColumns.vector(outputs[1]);
    if (!prediction.isEmpty()) {
      float[] flags = new float[outputs[1].length];
      for (int place : places) flags[place] = 1;
      cells[used++] = OutputColumns.vector(flags);
    }
    if (!label.isEmpty()) {
      double[] held = IntStream.of(places).asDoubleStream().toArray();
      cells[used++] = UnsafeArrayData.fromPrimitiveArray(held);
    }
    return new GenericInternalRow(Arrays.copyOf(cells, used));
  }

  private boolean holds(float[] probabilities, int i) {
    return probabilities[i] > (thresholds.length == 0 ? EVEN : thresholds[i]);
  }
}
