// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.spark.CaffeModel;
import cafetiere.spark.TrainingSummary;
import cafetiere.spark.connect.ModelReport;
import cafetiere.spark.keyed.KeyedNets;
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
  final CaffeModel net;  // of all rows; null where there are
  final KeyedNets nets;  // those of keys

  TableModel(String uid, CaffeModel net, KeyedNets nets) {
    this.uid = uid;
    this.net = net;
    this.nets = nets;
    setTableModelDefaults();
  }

  /** What is added to a table. */
  abstract OutputColumns columns();

  /** A model's own answer to a {@link ModelReport}; null where its net has it. */
  byte[] told(String asked) {
    return null;
  }

  /** The same for keys. */
  abstract KeyedNets.Outputs keyedColumns();

  /** A table's schema with what is added; with groupCol rows of unknown keys have nulls there. */
  static StructType append(
      TableModelParams<?> params, OutputColumns columns, StructType schema) {
    return params.getGroupCol().isEmpty()
        ? columns.append(schema) : KeyedNets.append(schema, columns);
  }

  /** With groupCol: a row for each key, with its net and weights, or why it has none. */
  public Dataset<Row> nets() {
    if (nets != null) return nets.table();
    throw new UnsupportedOperationException("there is one net for all rows: caffeModel() is it");
  }

  @Override
  public String uid() {
    return uid;
  }

  /** The class, the uid and what sets the model apart, as those of Spark ML say. */
  @Override
  public String toString() {
    return getClass().getSimpleName() + ": uid=" + uid
        + (nets == null ? size() : ", groupCol=" + getGroupCol());
  }

  /** What a model of one net says of its outputs, as {@code ", numClasses=2"}; or nothing. */
  abstract String size();

  /** With groupCol: the net of a key, which scores rows in all ways that a CaffeModel has. */
  public CaffeModel netOf(Object key) {
    nets();
    return nets.model(key, keyedColumns());
  }

  /** A model of one net with the params of this one. */
  abstract M ofNet(CaffeModel net);

  /**
   * With groupCol: the model of a key alone, which has what a model of one net has: its classes,
   * {@code exportOnnx}, and a path to be saved at.
   */
  public M modelOf(Object key) {
    M model = ofNet(netOf(key).setBatchSize(TableTraining.BATCH_TO_PREDICT));
    model.set(groupCol(), "");
    return model;
  }

  /** A copy of the net with its weights; the encoding of the columns is its first layer. */
  public CaffeModel caffeModel() {
    requireOneNet("caffeModel");
    return net.copy(ParamMap.empty());
  }

  /**
   * Writes the model as an ONNX file (opset 17) by Hadoop path, for servers that know no Spark. Its inputs
   * are the columns learned from, as they are; what ONNX cannot say is an error that names it.
   */
  public void exportOnnx(String path) {
    requireOneNet("exportOnnx");
    OnnxModel.write(net.getNet(), net.weights(), divisors(), path);
  }

  /** By which probabilities of classes are divided; none for numbers. */
  double[] divisors() {
    return new double[0];
  }

  /** What the training did; with groupCol, that of all keys. */
  public TrainingSummary summary() {
    return nets == null ? net.summary() : TrainingSummary.fromJson(nets.told().summary());
  }

  /** The same as a JSON object: the fields of {@link TrainingSummary} in snake_case. */
  public String result() {
    return summary().toJson();
  }

  /** The events of the training, one JSON object a line; with groupCol, none once it was saved. */
  public String events() {
    return nets == null ? net.events() : nets.told().events();
  }

  /** Bytes in memory, by which a server of Spark Connect decides how long it keeps a model there. */
  public long estimatedSize() {
    return net == null ? 0 : net.estimatedSize();
  }

  private Dataset<Row> report(Dataset<?> data) {
    requireOneNet("a report");
    byte[] told = told(ModelReport.asked(data.schema()));
    return told == null ? net.transform(data) : ModelReport.of(told, data.sparkSession());
  }

  @Override
  public Dataset<Row> transform(Dataset<?> data) {
    if (ModelReport.isAskedBy(data.schema())) return report(data);
    if (nets != null) return nets.transform(data, keyedColumns());
    return net.transform(data, columns(), getThreadsPerWorker());
  }

  @Override
  public StructType transformSchema(StructType schema) {
    if (ModelReport.isAskedBy(schema)) return ModelReport.schema();
    if (nets != null) return nets.transformSchema(schema, keyedColumns());
    return net.transformSchema(schema, columns());
  }

  @Override
  public MLWriter write() {
    return SavedTableModel.writer(this, net, nets);
  }

  void requireOneNet(String what) {
    if (nets == null) return;
    throw new UnsupportedOperationException(
        "there is a net for each key of groupCol: nets() has of all what " + what + " has of one, and"
            + " modelOf(key) is the model of one");
  }
}
