// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.core.CafetiereException;
import cafetiere.core.table.TableStatistics;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.CaffeModel;
import cafetiere.spark.PreflightException;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.feed.RowEncoder;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.plan.GivenNet;
import cafetiere.spark.plan.Parallelism;
import cafetiere.spark.preflight.Preflight;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.StructType;

/** What a fit on a table does: one pass counts, a net is made of the counts, and it is trained. */
final class TableTraining {
  static final String CLASS = "CLASS";
  static final String NUMBER = "NUMBER";

  private static final String ADAM_W = "AdamW";
  private static final int BATCH_TO_PREDICT = 256;

  private TableTraining() {}

  /** What one part of a table has told; {@code error} and its code, where it cannot be used. */
  private record Part(byte[] statistics, CafetiereException.Code code, String error)
      implements Serializable {
    CafetiereException exception() {
      return new CafetiereException(code, error);
    }
  }

  /** Refuses what can be seen before any row is. */
  static void check(TableParams<?> params, StructType schema, String labelKind) {
    if (!params.getWeightCol().isEmpty()) {
      throw new PreflightException(List.of("weightCol is set, and no loss takes weights of rows yet:"
          + " set it to \"\", and repeat rows that are to count more"));
    }
    TableColumns.of(params, schema, labelKind);
  }

  /** The trained net, which computes the blobs {@code outputs}. */
  static CaffeModel train(
      TableParams<?> params, Dataset<?> data, String labelKind, String... outputs) {
    check(params, data.schema(), labelKind);
    Dataset<Row> train = data.toDF();
    Dataset<Row> test = null;
    if (!params.getValidationIndicatorCol().isEmpty()) {
      Column held = functions.coalesce(
          functions.col(params.getValidationIndicatorCol()), functions.lit(false));
      test = train.filter(held);
      train = train.filter(functions.not(held));
    }
    SparkContext sc = train.sparkSession().sparkContext();
    CaffeEstimator estimator = estimator(params);
    Preflight.checkExecutors(sc, estimator);
    TableColumns columns = TableColumns.of(params, train.schema(), labelKind);
    Parallelism parallel = Parallelism.of(sc, params.getNumWorkers(), params.getShards());
    String net;
    CaffeModel model;
    try (GivenNet given = GivenNet.of(params.getNet(), sc.hadoopConfiguration())) {
      net = net(params, given.net(), train, columns, parallel.shards());
      model = estimator.setNet(net).setNumWorkers(parallel.workers())
          .setShards(parallel.shards()).setWeights(given.weights()).setValidationData(test)
          .fit(train);
    }
    return model.setNet(net + "state { phase: TEST stage: \"predict\" }\n").setOutputCols(outputs)
        .setLabelCol(params.getLabelCol()).setBatchSize(BATCH_TO_PREDICT);
  }

  private static CaffeEstimator estimator(TableParams<?> params) {
    CaffeEstimator estimator = new CaffeEstimator().setSolver(solver(params)).setPredictionCol("")
        .setLabelCol(params.getLabelCol()).setIdCol(params.getIdCol())
        .setNumWorkers(params.getNumWorkers()).setThreadsPerWorker(params.getThreadsPerWorker())
        .setSeed(params.getSeed()).setSyncMode(params.getSyncMode())
        .setSyncPeriod(params.getSyncPeriod()).setEngine(params.getEngine())
        .setEncrypt(params.getEncrypt()).setCheckpointDir(params.getCheckpointDir())
        .setResume(params.getResume()).setEvents(params.getEvents());
    return params.getMaxIter() > 0 ? estimator.setMaxIter(params.getMaxIter())
        : estimator.setEpochs(params.getMaxEpochs());
  }

  /** The prototxt of a solver; its max_iter, which policies want to see, gives way to the params. */
  private static String solver(TableParams<?> params) {
    String rule = params.getOptimizer();
    boolean hasMomentum = !List.of("AdaGrad", "RMSProp").contains(rule)
        || params.isSet(params.momentum());
    boolean hasDecay = rule.equals(ADAM_W) || params.isSet(params.weightDecay());
    String policy = switch (params.getLrSchedule()) {
      case "linear" -> "lr_policy: \"poly\" power: 1";
      default -> "lr_policy: \"" + params.getLrSchedule() + "\"";
    };
    return "type: \"" + rule + "\"\nbase_lr: " + (float) params.getBaseLr() + "\n" + policy + "\n"
        + (hasMomentum ? "momentum: " + (float) params.getMomentum() + "\n" : "")
        + "weight_decay: " + (hasDecay ? (float) params.getWeightDecay() : 0) + "\nmax_iter: 1\n";
  }

  private static String net(
      TableParams<?> params, String given, Dataset<Row> train, TableColumns columns, int shards) {
    ObjectNode options = Json.object().put("label", columns.label());
    ArrayNode layers = options.putArray("layers");
    for (int units : params.getLayers()) layers.add(units);
    options.put("activation", params.getActivation()).put("dropout", params.getDropout());
    options.put("batch_norm", params.getBatchNorm() ? 1 : 0).put("net", given);
    options.put("batch", (params.getBatchSize() + shards - 1) / shards);
    if (params.getOptimizer().equals(ADAM_W)) options.put("step_rows", params.getBatchSize());
    String counted = columns.options(train);
    try (TableStatistics whole = new TableStatistics(counted)) {
      whole.merge(statistics(columns.schema(), counted, train));
      return whole.net(options.toString());
    }
  }

  /** The statistics of all rows, the same bytes however they are distributed. */
  static byte[] statistics(FeedSchema schema, String options, Dataset<Row> table) {
    JavaRDD<InternalRow> rows = SparkInternals.rows(schema.select(table)).toJavaRDD();
    if (rows.getNumPartitions() == 0) {
      throw new PreflightException(List.of("the table has no rows: nothing can be learned from it"));
    }
    // An error travels as a value, since Spark would repeat what cannot succeed.
    Part sum = rows.mapPartitions(part -> List.of(count(schema, options, part)).iterator())
        .treeReduce((a, b) -> merged(options, a, b));
    if (sum.error() != null) throw sum.exception();
    return sum.statistics();
  }

  private static Part count(FeedSchema schema, String options, Iterator<InternalRow> rows) {
    try (TableStatistics table = new TableStatistics(options);
        RowEncoder encoder = new RowEncoder(schema, table::add)) {
      while (rows.hasNext()) encoder.add(rows.next());
      encoder.flush();
      return new Part(table.bytes(), null, null);
    } catch (CafetiereException e) {
      return new Part(null, e.code(), e.getMessage());
    }
  }

  private static Part merged(String options, Part a, Part b) {
    if (a.error() != null) return a;
    if (b.error() != null) return b;
    try (TableStatistics table = new TableStatistics(options)) {
      table.merge(a.statistics());
      table.merge(b.statistics());
      return new Part(table.bytes(), null, null);
    } catch (CafetiereException e) {
      return new Part(null, e.code(), e.getMessage());
    }
  }
}
