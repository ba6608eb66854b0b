// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import cafetiere.spark.CaffeModel;
import cafetiere.spark.keyed.KeyedNets;
import cafetiere.spark.predict.OutputColumns;
import cafetiere.spark.util.JavaVersion;
import java.util.List;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.util.MLReader;

/**
 * A trained classifier. It reads rows as they are: their encoding is a part of its net.
 */
public final class CaffeClassificationModel extends TableModel<CaffeClassificationModel>
    implements ClassificationParams<CaffeClassificationModel> {
  static final String[] BLOBS = {"score", "probability"};

  /** Described once: a stream is transformed batch by batch. */
  private final List<String> labels;

  /** A model whose net computes scores and probabilities. */
  CaffeClassificationModel(String uid, CaffeModel net) {
    this(uid, net, null, SavedTableModel.labels(net));
  }

  /** One of nets that each tell classes of their own apart. */
  CaffeClassificationModel(String uid, KeyedNets nets) {
    this(uid, null, nets, List.of());
  }

  private CaffeClassificationModel(
      String uid, CaffeModel net, KeyedNets nets, List<String> labels) {
    super(uid, net, nets);
    this.labels = labels;
    setClassificationDefaults();
  }

  /** The classes, in the order of the vectors. With groupCol each key has its own: see nets(). */
  public String[] labels() {
    requireOneNet("labels");
    return labels.toArray(new String[0]);
  }

  /** How many classes there are. */
  public int numClasses() {
    return labels().length;
  }

  @Override
  public CaffeClassificationModel copy(ParamMap extra) {
    return copyValues(new CaffeClassificationModel(uid(), net, nets, labels), extra).setParent(parent());
  }

  /** Reads a model that was saved. */
  public static MLReader<CaffeClassificationModel> read() {
    JavaVersion.require();
    return SavedTableModel.reader(CaffeClassificationModel.class,
        CaffeClassificationModel::new, CaffeClassificationModel::new);
  }

  /** Loads a model that was saved. */
  public static CaffeClassificationModel load(String path) {
    return read().load(path);
  }

  @Override
  double[] divisors() {
    return getThresholds();
  }

  @Override
  OutputColumns columns() {
    return ClassColumns.of(this, labels);
  }

  @Override
  KeyedNets.Outputs keyedColumns() {
    return KeyedNets.outputs(ClassColumns.maker(this), BLOBS);
  }
}
