// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.spark.internal.LocalSaving;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.run.TrainingResult;
import cafetiere.spark.saved.ModelFolder;
import cafetiere.spark.saved.ModelWriter;
import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.Json;
import cafetiere.spark.util.ModelPart;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.ml.util.MLReader;

/** A model on disk: its params as Spark ML saves them, and in data/ what Caffe's tools read. */
final class SavedModel {
  private static final String PLACE = ".path";
  private static final String RESULT = "result.json";
  private static final String EVENTS = "events.jsonl";
  private static final String COLUMNS = "columns.json";

  private SavedModel() {}

  /** Saves a model. */
  static final class Writer extends ModelWriter {
    private final CaffeModel model;

    Writer(CaffeModel model) {
      this.model = model;
    }

    @Override
    protected List<String> sources() {
      return List.of(model.weightsFile(), model.solverStateFile());
    }

    @Override
    public void saveImpl(String saved) {
      Configuration conf = sc().hadoopConfiguration();
      SparkInternals.saveMetadata(model, saved, sc());
      ModelFolder folder = new ModelFolder(LocalSaving.path(saved));
      TrainingResult training = model.training();
      write(training.model(), folder.weights(), conf);
      write(training.state(), folder.state(), conf);
      HadoopFiles.writeText(folder.data(RESULT), model.result(), conf);
      HadoopFiles.writeText(folder.data(EVENTS), model.events(), conf);
      if (model.boundColumns().isEmpty()) return;
      ObjectNode columns = Json.object();
      model.boundColumns().forEach(columns::put);
      HadoopFiles.writeText(folder.data(COLUMNS), columns.toString(), conf);
    }
  }

  /** A file that executors read stays where it is if they would not see the copy. */
  private static void write(ModelPart part, String path, Configuration conf) {
    if (part.isFile() && LocalSaving.isOn()) {
      HadoopFiles.writeText(path + PLACE, part.path(), conf);
    } else {
      part.write(part.isFile() ? ModelFolder.hdf5(path) : path, conf);
    }
  }

  /** Loads what {@link Writer} saved. */
  static final class Reader extends MLReader<CaffeModel> {
    @Override
    public CaffeModel load(String saved) {
      Configuration conf = sc().hadoopConfiguration();
      String uid = SparkInternals.savedUid(saved, sc(), CaffeModel.class);
      ModelFolder folder = new ModelFolder(LocalSaving.path(saved));
      TrainingResult training = new TrainingResult(
          part(folder.weights(), conf), part(folder.state(), conf),
          TrainingSummary.fromJson(HadoopFiles.readText(folder.data(RESULT), conf)),
          HadoopFiles.readText(folder.data(EVENTS), conf));
      CaffeModel model = new CaffeModel(uid, training, columns(folder.data(COLUMNS), conf));
      SparkInternals.loadParams(model, saved, sc());
      return model;
    }

    private static Map<String, String> columns(String path, Configuration conf) {
      Map<String, String> columns = new HashMap<>();
      if (!HadoopFiles.exists(path, conf)) return columns;
      Json.parse(HadoopFiles.readText(path, conf)).fields()
          .forEachRemaining(top -> columns.put(top.getKey(), top.getValue().asText()));
      return columns;
    }

    private static ModelPart part(String path, Configuration conf) {
      if (HadoopFiles.exists(path + PLACE, conf)) {
        return ModelPart.ofFile(HadoopFiles.readText(path + PLACE, conf));
      }
      String large = ModelFolder.hdf5(path);
      return HadoopFiles.exists(large, conf) ? ModelPart.ofFile(large)
          : ModelPart.of(HadoopFiles.read(path, conf));
    }
  }
}
