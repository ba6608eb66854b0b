// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.spark.CaffeModel;
import cafetiere.spark.PreflightException;
import cafetiere.spark.internal.LocalSaving;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.keyed.KeyedNets;
import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.saved.ModelFolder;
import cafetiere.spark.saved.ModelWriter;
import cafetiere.spark.util.HadoopFiles;
import java.util.List;
import java.util.function.BiFunction;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.ml.param.Params;
import org.apache.spark.ml.util.MLReader;
import org.apache.spark.ml.util.MLWriter;
import org.apache.spark.sql.SparkSession;

/**
 * A model on disk: its params as Spark ML saves them, and in net/ its CaffeModel or, where there is a net
 * for each key, in nets/ their table.
 */
final class SavedTableModel {
  private SavedTableModel() {}

  static MLWriter writer(Params model, CaffeModel net, KeyedNets nets) {
    return new ModelWriter() {
      @Override
      protected List<String> sources() {
        return nets != null ? List.of(nets.source())
            : List.of(net.weightsFile(), net.solverStateFile());
      }

      @Override
      public void saveImpl(String path) {
        SparkInternals.saveMetadata(model, path, sc());
        if (nets != null) {
          requireShared();
          nets.save(path);
          return;
        }
        net.write().saveImpl(ModelFolder.inTableModel(path).path());
      }
    };
  }

  static <M extends Params> MLReader<M> reader(
      Class<M> type, BiFunction<String, CaffeModel, M> create,
      BiFunction<String, KeyedNets, M> createKeyed) {
    return new MLReader<M>() {
      @Override
      public M load(String path) {
        String uid = SparkInternals.savedUid(path, sc(), type);
        M model = KeyedNets.areIn(LocalSaving.path(path), sc().hadoopConfiguration())
            ? createKeyed.apply(uid, KeyedNets.load(sparkSession(), path))
            : create.apply(uid, CaffeModel.load(ModelFolder.inTableModel(path).path()));
        SparkInternals.loadParams(model, path, sc());
        return model;
      }
    };
  }

  private static void requireShared() {
    if (!LocalSaving.isOn()) return;
    throw new IllegalStateException("nets of groupCol are a table of the cluster, which is not kept on"
        + " the disk of a server of Spark Connect: fit them in a session without Connect");
  }

  /** Whether a path to start from is that of a file of weights alone, and none of a saved model. */
  static boolean areWeights(String path) {
    return HadoopFiles.isFile(path, SparkSession.active().sparkContext().hadoopConfiguration());
  }

  /** The path of the weights of a saved model. */
  static String weights(String path) {
    if (areWeights(path)) return path;
    requireModel(path);
    String weights = ModelFolder.inTableModel(path).weights();
    String large = ModelFolder.hdf5(weights);
    return HadoopFiles.exists(large, SparkSession.active().sparkContext().hadoopConfiguration())
        ? large : weights;
  }

  /** Refuses folders that initialModel cannot begin with. */
  private static void requireModel(String path) {
    Configuration conf = SparkSession.active().sparkContext().hadoopConfiguration();
    if (HadoopFiles.exists(ModelFolder.inTableModel(path).path(), conf)) return;
    throw new PreflightException(List.of("initialModel: " + ModelFolder.otherThanModel(path, conf)
        .orElse("there is no saved model of a table at " + path + ": give the path that model.write().save()"
            + " has written, or that of a file of weights")));
  }

  /** The text of the net of a saved model. */
  static String net(String path) {
    return CaffeModel.load(ModelFolder.inTableModel(path).path()).getNet();
  }

  /** What the first layer of a net says of its label. */
  static NetDescription.Top label(String net) {
    return NetDescription.of("", net, "TEST").tops().stream()
        .filter(top -> top.name().equals("label")).findFirst()
        .orElseThrow(() -> new IllegalStateException("the net has no top 'label'"));
  }
}
