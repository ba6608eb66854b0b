// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.spark.CaffeModel;
import cafetiere.spark.keyed.KeyedNets;
import cafetiere.spark.predict.NumberColumns;
import cafetiere.spark.predict.OutputColumns;
import cafetiere.spark.util.JavaVersion;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.util.Identifiable$;
import org.apache.spark.ml.util.MLReader;

/**
 * A trained regressor. It reads rows as they are: their encoding is a part of its net.
 */
public final class CaffeRegressionModel extends TableModel<CaffeRegressionModel>
    implements RegressionParams<CaffeRegressionModel> {
  static final String[] BLOBS = {"prediction"};

  /** Described once: a stream is transformed batch by batch. */
  private final long numbers;

  /** A model without a net: a server of Spark Connect makes a list of classes with one of each. */
  public CaffeRegressionModel() {
    this(Identifiable$.MODULE$.randomUID("CaffeRegressionModel"), new CaffeModel(), null, 1);
  }

  /** A model whose net computes predictions. */
  CaffeRegressionModel(String uid, CaffeModel net) {
    this(uid, net, null, SavedTableModel.label(net.getNet()).width());
  }

  /** One of nets for keys. */
  CaffeRegressionModel(String uid, KeyedNets nets) {
    this(uid, null, nets, 1);
  }

  private CaffeRegressionModel(String uid, CaffeModel net, KeyedNets nets, long numbers) {
    super(uid, net, nets);
    this.numbers = numbers;
    setRegressionDefaults();
  }

  /** How many numbers it predicts: those of the label. */
  public int numOutputs() {
    return (int) numbers;
  }

  @Override
  public CaffeRegressionModel copy(ParamMap extra) {
    return copyValues(new CaffeRegressionModel(uid(), net, nets, numbers), extra).setParent(parent());
  }

  /** Reads a model that was saved. */
  public static MLReader<CaffeRegressionModel> read() {
    JavaVersion.require();
    return SavedTableModel.reader(CaffeRegressionModel.class,
        CaffeRegressionModel::new, CaffeRegressionModel::new);
  }

  /** Loads a model that was saved. */
  public static CaffeRegressionModel load(String path) {
    return read().load(path);
  }

  @Override
  CaffeRegressionModel ofNet(CaffeModel net) {
    return copyValues(new CaffeRegressionModel(uid(), net), ParamMap.empty());
  }

  @Override
  String size() {
    return ", numOutputs=" + numbers;
  }

  @Override
  OutputColumns columns() {
    return columns(this, numbers > 1);
  }

  @Override
  KeyedNets.Outputs keyedColumns() {
    OutputColumns columns = columns();
    return KeyedNets.outputs(classes -> columns, BLOBS);
  }

  /** What is added to a table. */
  static OutputColumns columns(RegressionParams<?> params, boolean areSeveral) {
    double[] quantiles = params.getQuantiles();
    return quantiles.length == 0 ? NumberColumns.of(params.getPredictionCol(), areSeveral)
        : NumberColumns.ofQuantiles(params.getPredictionCol(), params.getQuantilesCol(), quantiles);
  }
}
