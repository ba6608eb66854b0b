// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.spark.CaffeModel;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.keyed.KeyedNets;
import cafetiere.spark.plan.NetDescription;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.function.BiFunction;
import org.apache.spark.ml.param.Params;
import org.apache.spark.ml.util.MLReader;
import org.apache.spark.ml.util.MLWriter;

/**
 * A model on disk: its params as Spark ML saves them, and in net/ its CaffeModel or, where there is a net
 * for each key, in nets/ their table.
 */
final class SavedTableModel {
  private static final String NET = "/net";

  private SavedTableModel() {}

  static MLWriter writer(Params model, CaffeModel net, KeyedNets nets) {
    return new MLWriter() {
      @Override
      public void saveImpl(String path) {
        SparkInternals.saveMetadata(model, path, sc());
        if (nets != null) {
          nets.save(path);
          return;
        }
        try {
          net.write().save(path + NET);
        } catch (IOException e) {
          throw new UncheckedIOException(e);
        }
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
        M model = KeyedNets.areIn(path, sc().hadoopConfiguration())
            ? createKeyed.apply(uid, KeyedNets.load(sparkSession(), path))
            : create.apply(uid, CaffeModel.load(path + NET));
        SparkInternals.loadParams(model, path, sc());
        return model;
      }
    };
  }

  /** The classes that a net tells apart, which its first layer lists. */
  static List<String> labels(CaffeModel net) {
    return NetDescription.of("", net.getNet(), "TEST").tops().stream()
        .map(NetDescription.Top::classes).filter(classes -> !classes.isEmpty()).findFirst()
        .orElseThrow(() -> new IllegalStateException("the net has no classes"));
  }
}
