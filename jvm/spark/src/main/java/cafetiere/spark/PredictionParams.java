// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.spark.util.ParamChecks;
import org.apache.spark.ml.param.BooleanParam;
import org.apache.spark.ml.param.IntParam;
import org.apache.spark.ml.param.Param;
import org.apache.spark.ml.param.Params;
import org.apache.spark.ml.param.StringArrayParam;

/**
 * The params that CaffeEstimator and CaffeModel share. A Param is equal to every other of the same
 * name and parent, so that each method may make its own.
 */
public interface PredictionParams extends Params {
  /** The net's prototxt. */
  default Param<String> net() {
    return new Param<>(this, "net",
        "text of the net's prototxt; \"\" for the net that the solver names");
  }

  /** The column for the data layer's first top. */
  default Param<String> featuresCol() {
    return new Param<>(this, "featuresCol", "column that feeds the data layer's first top; another"
        + " top is fed by the column of its name, and those of CoSData as the layer says");
  }

  /** The column for the data layer's second top. */
  default Param<String> labelCol() {
    return new Param<>(this, "labelCol",
        "column that feeds the data layer's second top in training");
  }

  /** The column that identifies a row. */
  default Param<String> idCol() {
    return new Param<>(this, "idCol",
        "column that identifies a row; \"\": rows are known by their bytes");
  }

  /** The blobs that become columns. */
  default StringArrayParam outputCols() {
    return new StringArrayParam(this, "outputCols", "blobs that transform adds as columns of their"
        + " names (array<float>); none: what the net computes at its end");
  }

  /** The column for the prediction. */
  default Param<String> predictionCol() {
    return new Param<>(this, "predictionCol", "column for the index of the first output's largest"
        + " value, or for the value itself if there is only one; \"\" for none");
  }

  /** Whether images are made to fit. */
  default BooleanParam resize() {
    return new BooleanParam(this, "resize", "resize encoded images to the size that the data layer"
        + " declares, instead of refusing those of another size");
  }

  /** Rows computed together. */
  default IntParam batchSize() {
    return new IntParam(this, "batchSize",
        "rows that transform computes at a time; 0: the net's batch",
        ParamChecks.atLeast("batchSize", 0));
  }

  /** Threads of each task. */
  default IntParam threadsPerWorker() {
    return new IntParam(this, "threadsPerWorker", "threads of each task; 0: spark.task.cpus",
        ParamChecks.atLeast("threadsPerWorker", 0));
  }

  /** The net's prototxt. */
  default String getNet() {
    return getOrDefault(net());
  }

  /** The column for the data layer's first top. */
  default String getFeaturesCol() {
    return getOrDefault(featuresCol());
  }

  /** The column for the data layer's second top. */
  default String getLabelCol() {
    return getOrDefault(labelCol());
  }

  /** The column that identifies a row. */
  default String getIdCol() {
    return getOrDefault(idCol());
  }

  /** The blobs that become columns. */
  default String[] getOutputCols() {
    return getOrDefault(outputCols());
  }

  /** The column for the prediction. */
  default String getPredictionCol() {
    return getOrDefault(predictionCol());
  }

  /** Whether images are made to fit. */
  default boolean getResize() {
    return (boolean) getOrDefault(resize());
  }

  /** Rows computed together. */
  default int getBatchSize() {
    return (int) getOrDefault(batchSize());
  }

  /** Threads of each task. */
  default int getThreadsPerWorker() {
    return (int) getOrDefault(threadsPerWorker());
  }

  /** Sets the defaults of these params; for constructors. */
  default void setPredictionDefaults() {
    setDefault(net(), "");
    setDefault(featuresCol(), "features");
    setDefault(labelCol(), "label");
    setDefault(idCol(), "");
    setDefault(outputCols(), new String[0]);
    setDefault(predictionCol(), "prediction");
    setDefault(resize(), false);
    setDefault(batchSize(), 0);
    setDefault(threadsPerWorker(), 0);
  }
}
