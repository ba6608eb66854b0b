// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.spark.CaffeModel;
import cafetiere.spark.TrainingSummary;
import cafetiere.spark.plan.OnnxModel;
import cafetiere.spark.predict.OutputColumns;
import org.apache.spark.ml.Model;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.util.MLWritable;
import org.apache.spark.ml.util.MLWriter;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructType;

/**
 * A net whose first layer encodes the columns of a table, and what it says of a row.
 *
 * @param <M> the class of the model
 */
abstract class TableModel<M extends TableModel<M>> extends Model<M>
    implements TableModelParams<M>, MLWritable {
  private final String uid;
  final CaffeModel net;

  TableModel(String uid, CaffeModel net) {
    this.uid = uid;
    this.net = net;
    setTableModelDefaults();
  }

  /** What is added to a table. */
  abstract OutputColumns columns();

  @Override
  public String uid() {
    return uid;
  }

  /** A copy of the net with its weights; the encoding of the columns is its first layer. */
  public CaffeModel caffeModel() {
    return net.copy(ParamMap.empty());
  }

  /**
   * Writes the model as an ONNX file (opset 17) by Hadoop path, for servers that know no Spark. Its inputs
   * are the columns learned from, as they are; what ONNX cannot say is an error that names it.
   */
  public void exportOnnx(String path) {
    OnnxModel.write(net.getNet(), net.weights(), divisors(), path);
  }

  /** By which probabilities of classes are divided; none for numbers. */
  double[] divisors() {
    return new double[0];
  }

  /** What the training did. */
  public TrainingSummary summary() {
    return net.summary();
  }

  @Override
  public Dataset<Row> transform(Dataset<?> data) {
    return net.setThreadsPerWorker(getThreadsPerWorker()).transform(data, columns());
  }

  @Override
  public StructType transformSchema(StructType schema) {
    return net.transformSchema(schema, columns());
  }

  @Override
  public MLWriter write() {
    return SavedTableModel.writer(this, net);
  }
}
