// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.spark.CaffeModel;
import cafetiere.spark.predict.OutputColumns;
import cafetiere.spark.util.JavaVersion;
import java.util.List;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.util.MLReader;

/**
 * A trained classifier. It reads rows as they are: their encoding is a part of its net.
 */
public final class CaffeClassificationModel extends TableModel<CaffeClassificationModel>
    implements ClassificationParams<CaffeClassificationModel> {
  /** Described once: a stream is transformed batch by batch. */
  private final List<String> labels;

  /** A model whose net computes scores and probabilities. */
  CaffeClassificationModel(String uid, CaffeModel net) {
    this(uid, net, SavedTableModel.labels(net));
  }

  private CaffeClassificationModel(String uid, CaffeModel net, List<String> labels) {
    super(uid, net);
    this.labels = labels;
    setClassificationDefaults();
  }

  /** The classes, in the order of the vectors. */
  public String[] labels() {
    return labels.toArray(new String[0]);
  }

  /** How many classes there are. */
  public int numClasses() {
    return labels.size();
  }

  @Override
  public CaffeClassificationModel copy(ParamMap extra) {
    return copyValues(new CaffeClassificationModel(uid(), net, labels), extra).setParent(parent());
  }

  /** Reads a model that was saved. */
  public static MLReader<CaffeClassificationModel> read() {
    JavaVersion.require();
    return SavedTableModel.reader(CaffeClassificationModel.class, CaffeClassificationModel::new);
  }

  /** Loads a model that was saved. */
  public static CaffeClassificationModel load(String path) {
    return read().load(path);
  }

  @Override
  double[] divisors() {
    return getThresholds();
  }

  @Override
  OutputColumns columns() {
    return ClassColumns.of(this, labels);
  }
}
