// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.spark.PreflightException;
import cafetiere.spark.keyed.KeyedNets;
import cafetiere.spark.predict.LabelColumns;
import cafetiere.spark.predict.OutputColumns;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
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
    if (Arrays.stream(thresholds).filter(threshold -> threshold == 0).count() > 1) {
      throw new IllegalArgumentException("thresholds has more than one 0, by each of which its class would"
          + " be predicted whatever the others': give one of them a number above 0");
    }
    return new ClassColumns(raw, probability, prediction, label, labels, numbers(labels), thresholds);
  }

  /** Of rows with several labels; {@code labels}: how many there are, 0 where that is not known yet. */
  static OutputColumns ofSeveral(ClassificationParams<?> params, int labels) {
    return new LabelColumns(params.getRawPredictionCol(), params.getProbabilityCol(),
        params.getPredictionCol(), params.getPredictedLabelCol(), params.getThresholds())
        .checked(labels);
  }

  /** The labels, where all are numbers that doubles tell apart; else their places. */
  private static double[] numbers(List<String> labels) {
    boolean areNumbers = labels.stream().allMatch(label -> NUMBER.matcher(label).matches());
    double[] numbers = areNumbers ? labels.stream().mapToDouble(ClassColumns::number).toArray()
        : new double[0];
    return areNumbers && areDistinct(numbers) ? numbers
        : IntStream.range(0, labels.size()).asDoubleStream().toArray();
  }

  private static boolean areDistinct(double[] numbers) {
    return Arrays.stream(numbers).allMatch(Double::isFinite)
        && Arrays.stream(numbers).distinct().count() == numbers.length;
  }

  /** Of "-0" too it is 0, which evaluators take for the same. */
  private static double number(String label) {
    return Double.parseDouble(label) + 0.0;
  }

  /** Refuses a column of numbers of which two are one double: evaluators compare it with predictions. */
  static void requireDistinct(String column, List<String> labels) {
    for (int i = 1; i < labels.size(); i++) {  // they are in order
      if (number(labels.get(i - 1)) != number(labels.get(i))) continue;
      throw new PreflightException(List.of("the label '" + column + "' has the classes " + labels.get(i - 1)
          + " and " + labels.get(i) + ", which are the same double, as which they would be predicted: cast"
          + " it to text, or learn an index of its values"));
    }
  }

  @Override
  public StructType append(StructType schema) {
    return new Appended(schema).addVectors(raw, "rawPredictionCol", labels.size())
        .addVectors(probability, "probabilityCol", labels.size())
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
