// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.spark.keyed.KeyedNets;
import cafetiere.spark.predict.LabelColumns;
import cafetiere.spark.predict.OutputColumns;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.apache.spark.ml.linalg.SQLDataTypes;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * What a classifier says of a row, of its scores and probabilities. A name that is "" has no column.
 *
 * @param raw the column of the scores
 * @param probability that of the probabilities
 * @param prediction that of the class as a number
 * @param label that of the class as text
 * @param labels the classes
 * @param numbers what predictions of each are
 * @param thresholds by which probabilities are divided, or none
 */
record ClassColumns(String raw, String probability, String prediction, String label,
    List<String> labels, double[] numbers, double[] thresholds) implements OutputColumns {
  /** What the engine takes for one; Java's own parser would also take "1d". */
  private static final Pattern NUMBER = Pattern.compile("-?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d+)?");

  /** As the params say; without labels these are not known yet. */
  static OutputColumns of(ClassificationParams<?> params, List<String> labels) {
    return new ClassColumns(params.getRawPredictionCol(), params.getProbabilityCol(),
        params.getPredictionCol(), params.getPredictedLabelCol(), List.of(), new double[0],
        params.getThresholds()).with(labels);
  }

  /** The same for labels that are known later. */
  static KeyedNets.ColumnsOf maker(ClassificationParams<?> params) {
    ClassColumns unknown = (ClassColumns) of(params, List.of());
    return unknown::with;
  }

  private ClassColumns with(List<String> labels) {
    if (thresholds.length > 0 && !labels.isEmpty() && thresholds.length != labels.size()) {
      throw new IllegalArgumentException("thresholds has " + thresholds.length + " numbers, and there"
          + " are " + labels.size() + " classes: give one for each of " + String.join(", ", labels));
    }
    return new ClassColumns(raw, probability, prediction, label, labels, numbers(labels), thresholds);
  }

  /** Of rows with several labels; {@code labels}: how many there are, 0 where that is not known yet. */
  static OutputColumns ofSeveral(ClassificationParams<?> params, int labels) {
    return new LabelColumns(params.getRawPredictionCol(), params.getProbabilityCol(),
        params.getPredictionCol(), params.getPredictedLabelCol(), params.getThresholds())
        .checked(labels);
  }

  /** The labels, where all are numbers; else their places. */
  private static double[] numbers(List<String> labels) {
    boolean areNumbers = labels.stream().allMatch(label -> NUMBER.matcher(label).matches());
    return areNumbers ? labels.stream().mapToDouble(Double::parseDouble).toArray()
        : IntStream.range(0, labels.size()).asDoubleStream().toArray();
  }

  @Override
  public StructType append(StructType schema) {
    return new Appended(schema).add(raw, "rawPredictionCol", SQLDataTypes.VectorType())
        .add(probability, "probabilityCol", SQLDataTypes.VectorType())
        .add(prediction, "predictionCol", DataTypes.DoubleType)
        .add(label, "predictedLabelCol", DataTypes.StringType).schema();
  }

  @Override
  public InternalRow row(float[][] outputs) {
    int best = best(outputs[1]);
    Object[] cells = new Object[4];
    int used = 0;
    if (!raw.isEmpty()) cells[used++] = OutputColumns.vector(outputs[0]);
    if (!probability.isEmpty()) cells[used++] = OutputColumns.vector(outputs[1]);
    if (!prediction.isEmpty()) cells[used++] = numbers[best];
    if (!label.isEmpty()) cells[used++] = UTF8String.fromString(labels.get(best));
    return new GenericInternalRow(Arrays.copyOf(cells, used));
  }

  /** The first of those that are largest. */
  private int best(float[] probabilities) {
    int best = 0;
    for (int i = 1; i < probabilities.length; i++) {
      if (share(probabilities, i) > share(probabilities, best)) best = i;
    }
    return best;
  }

  /** As Spark's classifiers: by a threshold of 0 a class that is possible at all is predicted. */
  private double share(float[] probabilities, int i) {
    if (thresholds.length == 0 || probabilities[i] == 0) return probabilities[i];
    return probabilities[i] / thresholds[i];
  }
}
