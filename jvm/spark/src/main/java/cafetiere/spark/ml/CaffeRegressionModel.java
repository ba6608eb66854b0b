// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.spark.CaffeModel;
import cafetiere.spark.keyed.KeyedNets;
import cafetiere.spark.predict.OutputColumns;
import cafetiere.spark.predict.Outputs;
import cafetiere.spark.util.JavaVersion;
import java.util.List;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.util.MLReader;

/**
 * A trained regressor. It reads rows as they are: their encoding is a part of its net.
 */
public final class CaffeRegressionModel extends TableModel<CaffeRegressionModel> {
  static final String[] BLOBS = {"prediction"};

  /** A model whose net computes predictions. */
  CaffeRegressionModel(String uid, CaffeModel net) {
    super(uid, net, null);
  }

  /** One of nets for keys. */
  CaffeRegressionModel(String uid, KeyedNets nets) {
    super(uid, null, nets);
  }

  @Override
  public CaffeRegressionModel copy(ParamMap extra) {
    CaffeRegressionModel copy = nets == null
        ? new CaffeRegressionModel(uid(), net) : new CaffeRegressionModel(uid(), nets);
    return copyValues(copy, extra).setParent(parent());
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
  OutputColumns columns() {
    return columns(this);
  }

  @Override
  KeyedNets.Outputs keyedColumns() {
    OutputColumns columns = columns();
    return KeyedNets.outputs(classes -> columns, BLOBS);
  }

  /** What is added to a table. */
  static OutputColumns columns(TableModelParams<?> params) {
    return Outputs.of(List.of(), params.getPredictionCol(), false);
  }
}
