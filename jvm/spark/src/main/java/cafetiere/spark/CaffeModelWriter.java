// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.ml.util.MLWriter;

/** Saves a model: its params as Spark ML does, and beside them in data/ what Caffe's tools read. */
final class CaffeModelWriter extends MLWriter {
  static final String WEIGHTS = "/data/model.caffemodel";
  static final String STATE = "/data/model.solverstate";
  static final String RESULT = "/data/result.json";
  static final String EVENTS = "/data/events.jsonl";

  private final CaffeModel model;

  CaffeModelWriter(CaffeModel model) {
    this.model = model;
  }

  @Override
  public void saveImpl(String path) {
    Configuration conf = sc().hadoopConfiguration();
    SparkInternals.saveMetadata(model, path, sc());
    HadoopFiles.write(path + WEIGHTS, model.weights(), conf);
    HadoopFiles.write(path + STATE, model.solverState(), conf);
    HadoopFiles.writeText(path + RESULT, model.result(), conf);
    HadoopFiles.writeText(path + EVENTS, model.events(), conf);
  }
}
