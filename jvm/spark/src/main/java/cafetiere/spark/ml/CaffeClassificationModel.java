// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.spark.CaffeModel;
import cafetiere.spark.TrainingSummary;
import cafetiere.spark.predict.OutputColumns;
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
 * A trained classifier. It reads rows as they are: their encoding is a part of its net.
 */
public final class CaffeClassificationModel extends Model<CaffeClassificationModel>
    implements ClassificationParams<CaffeClassificationModel>, MLWritable {
  private final String uid;
  private final CaffeModel net;

  /** A model whose net computes scores and probabilities. */
  CaffeClassificationModel(String uid, CaffeModel net) {
    this.uid = uid;
    this.net = net;
    setTableModelDefaults();
    setClassificationDefaults();
  }

  @Override
  public String uid() {
    return uid;
  }

  /** The classes, in the order of the vectors. */
  public String[] labels() {
    return SavedTableModel.labels(net).toArray(new String[0]);
  }

  /** How many classes there are. */
  public int numClasses() {
    return labels().length;
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
    return configured().transform(data, columns(this, SavedTableModel.labels(net)));
  }

  @Override
  public StructType transformSchema(StructType schema) {
    return net.transformSchema(schema, columns(this, SavedTableModel.labels(net)));
  }

  @Override
  public CaffeClassificationModel copy(ParamMap extra) {
    return copyValues(new CaffeClassificationModel(uid, net), extra).setParent(parent());
  }

  @Override
  public MLWriter write() {
    return SavedTableModel.writer(this, net);
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

  /** What is added to a table; without labels they are not known yet. */
  static OutputColumns columns(ClassificationParams<?> params, List<String> labels) {
    return ClassColumns.of(params, labels);
  }

  private CaffeModel configured() {
    return net.setThreadsPerWorker(getThreadsPerWorker());
  }
}
