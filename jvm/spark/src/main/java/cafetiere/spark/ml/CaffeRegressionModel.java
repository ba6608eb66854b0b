// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.spark.CaffeModel;
import cafetiere.spark.TrainingSummary;
import cafetiere.spark.predict.OutputColumns;
import cafetiere.spark.predict.Outputs;
import cafetiere.spark.util.JavaVersion;
import java.util.List;
import org.apache.spark.ml.Model;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.util.MLReader;
import org.apache.spark.ml.util.MLWritable;
import org.apache.spark.ml.util.MLWriter;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructType;

/**
 * A trained regressor. It reads rows as they are: their encoding is a part of its net.
 */
public final class CaffeRegressionModel extends Model<CaffeRegressionModel>
    implements TableModelParams<CaffeRegressionModel>, MLWritable {
  private final String uid;
  private final CaffeModel net;

  /** A model whose net computes predictions. */
  CaffeRegressionModel(String uid, CaffeModel net) {
    this.uid = uid;
    this.net = net;
    setTableModelDefaults();
  }

  @Override
  public String uid() {
    return uid;
  }

  /** A copy of the net with its weights; the encoding of the columns is its first layer. */
  public CaffeModel caffeModel() {
    return net.copy(ParamMap.empty());
  }

  /** What the training did. */
  public TrainingSummary summary() {
    return net.summary();
  }

  @Override
  public Dataset<Row> transform(Dataset<?> data) {
    return configured().transform(data, columns(this));
  }

  @Override
  public StructType transformSchema(StructType schema) {
    return net.transformSchema(schema, columns(this));
  }

  @Override
  public CaffeRegressionModel copy(ParamMap extra) {
    return copyValues(new CaffeRegressionModel(uid, net), extra).setParent(parent());
  }

  @Override
  public MLWriter write() {
    return SavedTableModel.writer(this, net);
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

  /** What is added to a table. */
  static OutputColumns columns(TableModelParams<?> params) {
    return Outputs.of(List.of(), params.getPredictionCol(), false);
  }

  private CaffeModel configured() {
    return net.setThreadsPerWorker(getThreadsPerWorker());
  }
}
