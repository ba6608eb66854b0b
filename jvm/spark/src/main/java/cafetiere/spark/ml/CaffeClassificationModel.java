// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import static java.nio.charset.StandardCharsets.UTF_8;

import cafetiere.spark.CaffeModel;
import cafetiere.spark.keyed.KeyedNets;
import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.predict.OutputColumns;
import cafetiere.spark.util.JavaVersion;
import cafetiere.spark.util.Json;
import java.util.Arrays;
import java.util.stream.LongStream;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.util.Identifiable$;
import org.apache.spark.ml.util.MLReader;

/**
 * A trained classifier. It reads rows as they are: their encoding is a part of its net.
 */
public final class CaffeClassificationModel extends TableModel<CaffeClassificationModel>
    implements ClassificationParams<CaffeClassificationModel> {
  static final String[] BLOBS = {"score", "probability"};

  /** Described once: a stream is transformed batch by batch. */
  private final NetDescription.Top label;

  /** A model without a net: a server of Spark Connect makes a list of classes with one of each. */
  public CaffeClassificationModel() {
    this(Identifiable$.MODULE$.randomUID("CaffeClassificationModel"), new CaffeModel(), null, null);
  }

  /** A model whose net computes scores and probabilities. */
  CaffeClassificationModel(String uid, CaffeModel net) {
    this(uid, net, null, SavedTableModel.label(net.getNet()));
  }

  /** One of nets that each tell classes of their own apart. */
  CaffeClassificationModel(String uid, KeyedNets nets) {
    this(uid, null, nets, null);
  }

  private CaffeClassificationModel(
      String uid, CaffeModel net, KeyedNets nets, NetDescription.Top label) {
    super(uid, net, nets);
    this.label = label;
    setClassificationDefaults();
  }

  /**
   * The classes, in the order of the vectors; of several labels their places as text. With groupCol each
   * key has its own: see nets().
   */
  public String[] labels() {
    requireOneNet("labels");
    if (!hasSeveralLabels()) return label.classes().toArray(new String[0]);
    return LongStream.range(0, label.width()).mapToObj(Long::toString).toArray(String[]::new);
  }

  /** Whether a row has any number of labels, each of which holds or does not; never with groupCol. */
  public boolean hasSeveralLabels() {
    return label != null && areSeveral(label);
  }

  private static boolean areSeveral(NetDescription.Top label) {
    return label.kind().equals(TableTraining.FLAGS);
  }

  /** How many classes or labels there are. */
  public int numClasses() {
    return labels().length;
  }

  @Override
  public CaffeClassificationModel copy(ParamMap extra) {
    return copyValues(new CaffeClassificationModel(uid(), net, nets, label), extra).setParent(parent());
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
  CaffeClassificationModel ofNet(CaffeModel net) {
    return copyValues(new CaffeClassificationModel(uid(), net), ParamMap.empty());
  }

  @Override
  String size() {
    if (label == null) return "";
    return ", numClasses=" + numClasses();
  }

  @Override
  byte[] told(String asked) {
    return asked.equals("labels")
        ? Json.array(Arrays.asList(labels())).toString().getBytes(UTF_8) : null;
  }

  /** Of several labels the file tells the probabilities alone. */
  @Override
  double[] divisors() {
    return hasSeveralLabels() ? new double[0] : getThresholds();
  }

  @Override
  OutputColumns columns() {
    return columns(this, label);
  }

  /** What is added to a table; refuses thresholds that are not one for each class. */
  static OutputColumns columns(ClassificationParams<?> params, NetDescription.Top label) {
    return areSeveral(label)
        ? ClassColumns.ofSeveral(params, (int) label.width()) : ClassColumns.of(params, label.classes());
  }

  @Override
  KeyedNets.Outputs keyedColumns() {
    return KeyedNets.outputs(ClassColumns.maker(this), BLOBS);
  }
}
