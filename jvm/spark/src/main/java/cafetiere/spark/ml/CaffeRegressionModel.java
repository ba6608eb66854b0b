// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.spark.CaffeModel;
import cafetiere.spark.predict.NumberColumns;
import cafetiere.spark.predict.OutputColumns;
import cafetiere.spark.util.JavaVersion;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.util.MLReader;

/**
 * A trained regressor. It reads rows as they are: their encoding is a part of its net.
 */
public final class CaffeRegressionModel extends TableModel<CaffeRegressionModel>
    implements RegressionParams<CaffeRegressionModel> {
  /** Described once: a stream is transformed batch by batch. */
  private final long numbers;

  /** A model whose net computes predictions. */
  CaffeRegressionModel(String uid, CaffeModel net) {
    this(uid, net, SavedTableModel.label(net).width());
  }

  private CaffeRegressionModel(String uid, CaffeModel net, long numbers) {
    super(uid, net);
    this.numbers = numbers;
    setRegressionDefaults();
  }

  /** How many numbers it predicts: those of the label. */
  public int numOutputs() {
    return (int) numbers;
  }

  @Override
  public CaffeRegressionModel copy(ParamMap extra) {
    return copyValues(new CaffeRegressionModel(uid(), net, numbers), extra).setParent(parent());
  }

  /** Reads a model that was saved. */
  public static MLReader<CaffeRegressionModel> read() {
    JavaVersion.require();
    return SavedTableModel.reader(CaffeRegressionModel.class, CaffeRegressionModel::new);
  }

  /** Loads a model that was saved. */
  public static CaffeRegressionModel load(String path) {
    return read().load(path);
  }

  @Override
  OutputColumns columns() {
    return columns(this, numbers > 1);
  }

  /** What is added to a table. */
  static OutputColumns columns(RegressionParams<?> params, boolean areSeveral) {
    double[] quantiles = params.getQuantiles();
    return quantiles.length == 0 ? NumberColumns.of(params.getPredictionCol(), areSeveral)
        : NumberColumns.ofQuantiles(params.getPredictionCol(), params.getQuantilesCol(), quantiles);
  }
}
