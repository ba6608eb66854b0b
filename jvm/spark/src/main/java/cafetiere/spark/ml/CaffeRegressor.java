// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.spark.PreflightException;
import cafetiere.spark.explain.Explanation;
import cafetiere.spark.util.JavaVersion;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.apache.spark.ml.Estimator;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.util.DefaultParamsReader;
import org.apache.spark.ml.util.DefaultParamsWritable;
import org.apache.spark.ml.util.Identifiable$;
import org.apache.spark.ml.util.MLReader;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.types.StructType;

/**
 * Learns numbers from the columns of a table: numbers, texts, dates and vectors, as they are. Values may be
 * missing, and others than those trained on may come later.
 */
public final class CaffeRegressor extends Estimator<CaffeRegressionModel>
    implements RegressorParams<CaffeRegressor>, DefaultParamsWritable {
  private final String uid;

  /** A regressor with a uid of its own. */
  public CaffeRegressor() {
    this(Identifiable$.MODULE$.randomUID("CaffeRegressor"));
  }

  /** A regressor with the given uid. */
  public CaffeRegressor(String uid) {
    JavaVersion.require();
    this.uid = uid;
    setTableModelDefaults();
    setRegressionDefaults();
    setTableDefaults();
    setRegressorDefaults();
  }

  @Override
  public String uid() {
    return uid;
  }

  /** Reads the table twice, to count and to train: cache it if it is dear to make. */
  @Override
  public CaffeRegressionModel fit(Dataset<?> data) {
    transformSchema(data.schema());
    CaffeRegressionModel model = getGroupCol().isEmpty()
        ? new CaffeRegressionModel(
            uid, TableTraining.train(this, task(), data, label -> { }, CaffeRegressionModel.BLOBS))
        : new CaffeRegressionModel(uid, TableTraining.trainKeys(this, task(), data));
    return copyValues(model, ParamMap.empty()).setParent(this);
  }

  /**
   * Tells what a fit on this table would do and take. Reads the table to count, then trains for some
   * seconds on a few rows, on all executors that fit would use, and throws the weights away.
   */
  public Explanation explain(Dataset<?> data) {
    return explain(data, true);
  }

  /** The same; with {@code probe} false by the limits of an executor's machine, without a training. */
  public Explanation explain(Dataset<?> data, boolean probe) {
    return TableTraining.explain(this, task(), data, probe);
  }

  @Override
  public StructType transformSchema(StructType schema) {
    TableColumns columns = TableTraining.check(this, task(), schema);
    return TableModel.append(
        this, CaffeRegressionModel.columns(this, columns.hasSeveralNumbers()), schema);
  }

  private TableColumns.Task task() {
    boolean learnsQuantiles = getLoss().equals("quantile");
    if (learnsQuantiles != getQuantiles().length > 0) {
      throw new PreflightException(List.of(learnsQuantiles
          ? "loss is quantile: set quantiles, such as 0.1, 0.5 and 0.9"
          : "quantiles is set, and loss is " + getLoss() + ": set loss to quantile"));
    }
    if (isSet(huberDelta()) && !getLoss().equals("huber")) {
      throw new PreflightException(List.of(
          "huberDelta is set, and loss is " + getLoss() + ": set loss to huber"));
    }
    ObjectNode options = Json.object().put("loss", getLoss()).put("delta", getHuberDelta());
    for (double quantile : getQuantiles()) options.withArray("quantiles").add(quantile);
    List<String> several = List.of(getLabelCols());
    return new TableColumns.Task(
        several.isEmpty() ? List.of(getLabelCol()) : several, TableTraining.NUMBER, options);
  }

  @Override
  public CaffeRegressor copy(ParamMap extra) {
    return copyValues(new CaffeRegressor(uid), extra);
  }

  /** Reads a regressor that was saved. */
  public static MLReader<CaffeRegressor> read() {
    return new DefaultParamsReader<>();
  }

  /** Loads a regressor that was saved. */
  public static CaffeRegressor load(String path) {
    return read().load(path);
  }
}
