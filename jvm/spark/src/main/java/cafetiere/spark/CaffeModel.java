// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static java.nio.charset.StandardCharsets.UTF_8;

import cafetiere.core.Predictor;
import cafetiere.spark.connect.ModelReport;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.feed.MeanFiles;
import cafetiere.spark.internal.BinaryRows;
import cafetiere.spark.kinds.ColumnKinds;
import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.plan.NetDescription.Top;
import cafetiere.spark.predict.LocalModel;
import cafetiere.spark.predict.OutputColumns;
import cafetiere.spark.predict.Outputs;
import cafetiere.spark.predict.PredictionIterator;
import cafetiere.spark.predict.PredictionPlan;
import cafetiere.spark.predict.SentWeights;
import cafetiere.spark.preprocess.Preprocessing;
import cafetiere.spark.run.TrainingResult;
import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.JavaVersion;
import cafetiere.spark.util.ModelPart;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.ml.Model;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.util.Identifiable$;
import org.apache.spark.ml.util.MLReader;
import org.apache.spark.ml.util.MLWritable;
import org.apache.spark.ml.util.MLWriter;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;

/** A trained net, which adds its outputs to a table. */
public final class CaffeModel extends Model<CaffeModel> implements CaffeModelParams, MLWritable {
  private final String uid;
  private final TrainingResult training;
  private final Map<String, String> boundColumns;
  private final SentWeights sent = new SentWeights();
  private transient PredictionPlan lastPlan;
  private transient List<String> lastOutputs;

  /** A model without weights: a server of Spark Connect makes a list of classes with one of each. */
  public CaffeModel() {
    this(newUid(), untrained(ModelPart.of(new byte[0])));
  }

  /** A model of what a training left behind; the param `net` must be set. */
  CaffeModel(String uid, TrainingResult training) {
    this(uid, training, Map.of());
  }

  /** The same, whose tops are fed by {@code boundColumns} as in {@link #ofWeights}. */
  CaffeModel(String uid, TrainingResult training, Map<String, String> boundColumns) {
    this.uid = uid;
    this.training = training;
    this.boundColumns = Map.copyOf(boundColumns);
    setPredictionDefaults();
  }

  /**
   * A model of weights that were trained elsewhere; the param `net` must be set.
   *
   * @param weights a caffemodel
   * @param columns feeds tops by these columns (top, column), whatever params and net say of them;
   *     empty to leave it to those
   */
  public static CaffeModel ofWeights(byte[] weights, Map<String, String> columns) {
    return of(ModelPart.of(weights), columns);
  }

  /**
   * The same of the weights in a file, a caffemodel or its HDF5 form, by Hadoop path. Larger ones than
   * spark.cafetiere.largestModel are read from there by each executor.
   */
  public static CaffeModel ofWeightsFile(String path, Map<String, String> columns) {
    return of(ModelPart.read(path, SparkSession.active()), columns);
  }

  private static CaffeModel of(ModelPart weights, Map<String, String> columns) {
    return new CaffeModel(newUid(), untrained(weights), columns);
  }

  private static String newUid() {
    return Identifiable$.MODULE$.randomUID("CaffeModel");
  }

  private static TrainingResult untrained(ModelPart weights) {
    return new TrainingResult(
        weights, ModelPart.of(new byte[0]), TrainingSummary.fromJson("{}"), "");
  }

  @Override
  public String uid() {
    return uid;
  }

  /** The weights, a caffemodel; an error where they are a {@link #weightsFile}. */
  public byte[] weights() {
    return bytes(training.model(), "weightsFile");
  }

  /** Iteration and history of the solver, a solverstate; an error where that is a file. */
  public byte[] solverState() {
    return bytes(training.state(), "solverStateFile");
  }

  /**
   * Hadoop path of weights larger than the conf spark.cafetiere.largestModel (1g), which are no bytes;
   * else "". A training leaves such a file in checkpointDir, where it has to stay as long as the model
   * is used; {@link #write} copies it.
   */
  public String weightsFile() {
    return training.model().path();
  }

  /** The state that goes with {@link #weightsFile}. */
  public String solverStateFile() {
    return training.state().path();
  }

  /** What the training left behind. */
  TrainingResult training() {
    return training;
  }

  /** Tops and the columns that feed them, whatever params and net say. */
  Map<String, String> boundColumns() {
    return boundColumns;
  }

  private static byte[] bytes(ModelPart part, String method) {
    if (!part.isFile()) return part.bytes();
    throw new IllegalStateException("this model is larger than " + ModelPart.LARGEST + " and lies in "
        + part.path() + ": take that path from " + method + ", or raise " + ModelPart.LARGEST);
  }

  /** What the training did; empty for weights that were trained elsewhere. */
  public TrainingSummary summary() {
    return training.summary();
  }

  /**
   * The same as a JSON object: the fields of {@link TrainingSummary} in snake_case, all of them
   * whichever the engine, with epochs and rows_used; {@code rowsPerSecond} is rows_per_s.
   */
  public String result() {
    return summary().toJson();
  }

  /** The events of the training, one JSON object a line. */
  public String events() {
    return training.events();
  }

  /** Bytes in memory, by which a server of Spark Connect decides how long it keeps a model there. */
  public long estimatedSize() {
    return training.model().bytes().length + training.state().bytes().length
        + training.events().length() + getNet().length();
  }

  /** The answer to a {@link ModelReport}. */
  private byte[] told(String asked) {
    switch (asked) {
      case "weights": return weights();
      case "solverState": return solverState();
      case "weightsFile": return weightsFile().getBytes(UTF_8);
      case "solverStateFile": return solverStateFile().getBytes(UTF_8);
      case "result": return result().getBytes(UTF_8);
      case "events": return events().getBytes(UTF_8);
      case "net": return getNet().getBytes(UTF_8);
      default: throw ModelReport.unknown(asked);
    }
  }

  @Override
  public Dataset<Row> transform(Dataset<?> data) {
    if (ModelReport.isAskedBy(data.schema())) {
      return ModelReport.of(told(ModelReport.asked(data.schema())), data.sparkSession());
    }
    PredictionPlan plan = plan(data.schema(), getThreadsPerWorker());
    return transform(data, plan, columns(plan));
  }

  /**
   * Adds columns that are made of the floats of {@code outputCols}, in place of those blobs.
   *
   * @param threads in place of {@code threadsPerWorker}
   */
  public Dataset<Row> transform(Dataset<?> data, OutputColumns columns, int threads) {
    return transform(data, plan(data.schema(), threads), columns);
  }

  private Dataset<Row> transform(Dataset<?> data, PredictionPlan plan, OutputColumns columns) {
    StructType schema = data.schema();
    return BinaryRows.map(data, columns.append(schema),
        predict(plan, columns, schema, data.sparkSession().sparkContext()));
  }

  private OutputColumns columns(PredictionPlan plan) {
    return Outputs.of(plan.outputs(), getPredictionCol(), getSkipBadRows());
  }

  private BinaryRows.Mapping predict(
      PredictionPlan plan, OutputColumns columns, StructType schema, SparkContext sc) {
    if (training.model().isFile()) {
      String file = weightsFile();
      SerializableConfiguration conf = new SerializableConfiguration(sc.hadoopConfiguration());
      return rows -> new PredictionIterator(
          plan, columns, () -> LocalModel.open(plan, file, conf.value()), schema, rows);
    }
    Broadcast<byte[]> model = sent.to(sc, weights());
    return rows -> new PredictionIterator(
        plan, columns, () -> plan.open(model.value()), schema, rows);
  }

  @Override
  public StructType transformSchema(StructType schema) {
    if (ModelReport.isAskedBy(schema)) return ModelReport.schema();
    return columns(plan(schema, getThreadsPerWorker())).append(schema);
  }

  /** What {@link #transform(Dataset, OutputColumns, int)} makes of a schema; checks it. */
  public StructType transformSchema(StructType schema, OutputColumns columns) {
    plan(schema, getThreadsPerWorker());
    return columns.append(schema);
  }

  @Override
  public CaffeModel copy(ParamMap extra) {
    return copyValues(new CaffeModel(uid, training, boundColumns), extra).setParent(parent());
  }

  @Override
  public MLWriter write() {
    return new SavedModel.Writer(this);
  }

  /** Reads a model that was saved. */
  public static MLReader<CaffeModel> read() {
    JavaVersion.require();
    return new SavedModel.Reader();
  }

  /** Loads a model that was saved. */
  public static CaffeModel load(String path) {
    return read().load(path);
  }

  /** What the tasks will be told; checks net and columns. */
  private PredictionPlan plan(StructType schema, int threads) {
    List<String> outputs = List.of(getOutputCols());
    NetDescription description = NetDescription.of("", getNet(), "TEST").requireOneBatch()
        .requireBlobs("outputCols", outputs);
    int batch = getBatchSize() > 0 ? getBatchSize() : (int) description.batchSize();
    FeedSchema feed = feed(Preprocessing.schema(getPreprocessor(), schema), description.tops(), outputs);
    ColumnKinds.ofDescription(description.json()).require(feed.table());
    Configuration conf = SparkSession.active().sparkContext().hadoopConfiguration();
    PredictionPlan plan = new PredictionPlan(getNet(), weightsVersion(),
        feed.withMeans(MeanFiles.of(conf, getNet())), outputs, batch, threads,
        getPredictionPrecision(), getPreprocessor());
    return outputs.isEmpty() ? plan.withOutputs(defaultOutputs(plan)) : plan;
  }

  private String weightsVersion() {
    if (!training.model().isFile()) return sent.sha256(weights());
    return HadoopFiles.version(
        weightsFile(), SparkSession.active().sparkContext().hadoopConfiguration());
  }

  /**
   * What the net computes at its end, which the engine knows once the weights are in. It is kept,
   * since transformSchema asks for it again and again.
   */
  private synchronized List<String> defaultOutputs(PredictionPlan plan) {
    if (!plan.equals(lastPlan)) {
      try (Predictor predictor = open(plan)) {
        lastOutputs = PredictionPlan.outputs(predictor).stream()
            .map(PredictionPlan.Output::name).toList();
      }
      lastPlan = plan;
    }
    return lastOutputs;
  }

  private Predictor open(PredictionPlan plan) {
    if (!training.model().isFile()) return plan.open(weights());
    Configuration conf = SparkSession.active().sparkContext().hadoopConfiguration();
    return LocalModel.open(plan, weightsFile(), conf);
  }

  /**
   * Tops other than the features are fed where the table has their columns. A label is left alone unless
   * it is asked for: a table to predict need not have good ones.
   */
  private FeedSchema feed(StructType schema, List<Top> tops, List<String> outputs) {
    List<String> columns = Arrays.asList(schema.fieldNames());
    List<FeedSchema.Input> inputs = new ArrayList<>();
    for (Top top : tops) {
      String own = top.columnOf(getFeaturesCol(), getLabelCol());
      String column = boundColumns.getOrDefault(top.name(), own);
      boolean isFed = boundColumns.containsKey(top.name())
          || (top.isLabel(getLabelCol()) ? outputs.contains(top.name())
              : columns.contains(column) || !top.cells().isEmpty());
      if (top.isFeatures() || isFed) inputs.addAll(top.inputs(column));
    }
    String id = columns.contains(getIdCol()) ? getIdCol() : "";
    return FeedSchema.of(schema, inputs, id).resizing(getResize())
        .skippingBadRows(getSkipBadRows(), "", getNet(), "TEST");
  }
}
