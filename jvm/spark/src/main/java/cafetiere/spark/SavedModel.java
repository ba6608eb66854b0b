// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.run.TrainingResult;
import cafetiere.spark.util.HadoopFiles;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.ml.util.MLReader;
import org.apache.spark.ml.util.MLWriter;

/** A model on disk: its params as Spark ML saves them, and in data/ what Caffe's tools read. */
final class SavedModel {
  private static final String WEIGHTS = "/data/model.caffemodel";
  private static final String STATE = "/data/model.solverstate";
  private static final String RESULT = "/data/result.json";
  private static final String EVENTS = "/data/events.jsonl";

  private SavedModel() {}

  /** Saves a model. */
  static final class Writer extends MLWriter {
    private final CaffeModel model;

    Writer(CaffeModel model) {
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

  /** Loads what {@link Writer} saved. */
  static final class Reader extends MLReader<CaffeModel> {
    @Override
    public CaffeModel load(String path) {
      Configuration conf = sc().hadoopConfiguration();
      String uid = SparkInternals.savedUid(path, sc(), CaffeModel.class);
      TrainingResult training = new TrainingResult(
          HadoopFiles.read(path + WEIGHTS, conf),
          HadoopFiles.read(path + STATE, conf),
          TrainingSummary.fromJson(HadoopFiles.readText(path + RESULT, conf)),
          HadoopFiles.readText(path + EVENTS, conf));
      CaffeModel model = new CaffeModel(uid, training);
      SparkInternals.loadParams(model, path, sc());
      return model;
    }
  }
}
