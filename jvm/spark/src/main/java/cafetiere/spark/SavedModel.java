// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.spark.internal.LocalSaving;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.run.TrainingResult;
import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.ModelPart;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.ml.util.MLReader;
import org.apache.spark.ml.util.MLWriter;

/** A model on disk: its params as Spark ML saves them, and in data/ what Caffe's tools read. */
final class SavedModel {
  private static final String WEIGHTS = "/data/model.caffemodel";
  private static final String STATE = "/data/model.solverstate";
  private static final String HDF5 = ".h5";
  private static final String PLACE = ".path";
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
    public void saveImpl(String saved) {
      Configuration conf = sc().hadoopConfiguration();
      SparkInternals.saveMetadata(model, saved, sc());
      String path = LocalSaving.path(saved);
      TrainingResult training = model.training();
      write(training.model(), path + WEIGHTS, conf);
      write(training.state(), path + STATE, conf);
      HadoopFiles.writeText(path + RESULT, model.result(), conf);
      HadoopFiles.writeText(path + EVENTS, model.events(), conf);
    }
  }

  /** A file that executors read stays where it is if they would not see the copy. */
  private static void write(ModelPart part, String path, Configuration conf) {
    if (part.isFile() && LocalSaving.isOn()) {
      HadoopFiles.writeText(path + PLACE, part.path(), conf);
    } else {
      part.write(path + (part.isFile() ? HDF5 : ""), conf);
    }
  }

  /** Loads what {@link Writer} saved. */
  static final class Reader extends MLReader<CaffeModel> {
    @Override
    public CaffeModel load(String saved) {
      Configuration conf = sc().hadoopConfiguration();
      String uid = SparkInternals.savedUid(saved, sc(), CaffeModel.class);
      String path = LocalSaving.path(saved);
      TrainingResult training = new TrainingResult(
          part(path + WEIGHTS, conf), part(path + STATE, conf),
          TrainingSummary.fromJson(HadoopFiles.readText(path + RESULT, conf)),
          HadoopFiles.readText(path + EVENTS, conf));
      CaffeModel model = new CaffeModel(uid, training);
      SparkInternals.loadParams(model, saved, sc());
      return model;
    }

    private static ModelPart part(String path, Configuration conf) {
      if (HadoopFiles.exists(path + PLACE, conf)) {
        return ModelPart.ofFile(HadoopFiles.readText(path + PLACE, conf));
      }
      return HadoopFiles.exists(path + HDF5, conf) ? ModelPart.ofFile(path + HDF5)
          : ModelPart.of(HadoopFiles.read(path, conf));
    }
  }
}
