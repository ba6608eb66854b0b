// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.spark.explain.Explanation;
import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.util.JavaVersion;
import cafetiere.spark.util.Json;
import java.util.List;
import org.apache.spark.ml.Estimator;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.util.DefaultParamsReader;
import org.apache.spark.ml.util.DefaultParamsWritable;
import org.apache.spark.ml.util.Identifiable$;
import org.apache.spark.ml.util.MLReader;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StructType;

/**
 * Learns classes from the columns of a table: numbers, texts, dates and vectors, as they are. Values may be
 * missing, and others than those trained on may come later.
 */
public final class CaffeClassifier extends Estimator<CaffeClassificationModel>
    implements ClassifierParams<CaffeClassifier>, DefaultParamsWritable {
  private final String uid;

  /** A classifier with a uid of its own. */
  public CaffeClassifier() {
    this(Identifiable$.MODULE$.randomUID("CaffeClassifier"));
  }

  /** A classifier with the given uid. */
  public CaffeClassifier(String uid) {
    JavaVersion.require();
    this.uid = uid;
    setTableModelDefaults();
    setClassificationDefaults();
    setTableDefaults();
    setClassifierDefaults();
  }

  @Override
  public String uid() {
    return uid;
  }

  /** Reads the table twice, to count and to train: cache it if it is dear to make. */
  @Override
  public CaffeClassificationModel fit(Dataset<?> data) {
    transformSchema(data.schema());
    CaffeClassificationModel model = getGroupCol().isEmpty()
        ? new CaffeClassificationModel(
            uid, TableTraining.train(this, task(), data, label -> check(label, data.schema()),
                CaffeClassificationModel.BLOBS))
        : new CaffeClassificationModel(uid, TableTraining.trainKeys(this, task(), data));
    return copyValues(model, ParamMap.empty()).setParent(this);
  }

  /** Refuses, before the training, classes that the params or predictions do not fit. */
  private void check(NetDescription.Top label, StructType schema) {
    CaffeClassificationModel.columns(this, label);
    boolean isNumber = schema.apply(getLabelCol()).dataType() instanceof NumericType;
    if (isNumber) ClassColumns.requireDistinct(getLabelCol(), label.classes());
  }

  /**
   * Tells what a fit on this table would do and take. Reads the table to count, then trains for some
   * seconds on a few rows, on all executors that fit would use, and throws the weights away.
   */
  public Explanation explain(Dataset<?> data) {
    return explain(data, true);
  }

  /** The same; with {@code probe} false by the limits of an executor's machine, without a training. */
  public Explanation explain(Dataset<?> data, boolean probe) {
    return TableTraining.explain(this, task(), data, probe);
  }

  @Override
  public StructType transformSchema(StructType schema) {
    TableColumns columns = TableTraining.check(this, task(), schema);
    boolean areSeveral = columns.kinds().contains(TableTraining.FLAGS);
    return TableModel.append(this, areSeveral ? ClassColumns.ofSeveral(this, 0)
        : ClassColumns.of(this, List.of()), schema);
  }

  private TableColumns.Task task() {
    return new TableColumns.Task(List.of(getLabelCol()), TableTraining.CLASS,
        Json.object().put("class_weights", getClassWeights()));
  }

  @Override
  public CaffeClassifier copy(ParamMap extra) {
    return copyValues(new CaffeClassifier(uid), extra);
  }

  /** Reads a classifier that was saved. */
  public static MLReader<CaffeClassifier> read() {
    return new DefaultParamsReader<>();
  }

  /** Loads a classifier that was saved. */
  public static CaffeClassifier load(String path) {
    return read().load(path);
  }
}
