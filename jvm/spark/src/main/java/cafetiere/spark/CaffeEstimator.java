// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.spark.barrier.BarrierEngine;
import cafetiere.spark.explain.Explainer;
import cafetiere.spark.explain.Explanation;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.feed.HeldOutRows;
import cafetiere.spark.feed.MeanFiles;
import cafetiere.spark.kinds.ColumnKinds;
import cafetiere.spark.netfiles.FileTable;
import cafetiere.spark.netfiles.RowNet;
import cafetiere.spark.plan.Encryption;
import cafetiere.spark.plan.Epochs;
import cafetiere.spark.plan.NetDescription;
import cafetiere.spark.plan.NetDescription.Top;
import cafetiere.spark.plan.Parallelism;
import cafetiere.spark.plan.SolverSettings;
import cafetiere.spark.plan.SourceLayer;
import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.predict.Outputs;
import cafetiere.spark.preflight.Findings;
import cafetiere.spark.preflight.Preflight;
import cafetiere.spark.preprocess.Preprocessing;
import cafetiere.spark.rounds.RoundsEngine;
import cafetiere.spark.run.Engine;
import cafetiere.spark.run.Run;
import cafetiere.spark.run.TrainingResult;
import cafetiere.spark.store.SnapshotFiles;
import cafetiere.spark.survivors.SurvivorEngine;
import cafetiere.spark.util.JavaVersion;
import cafetiere.spark.util.ModelPart;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkContext;
import org.apache.spark.ml.Estimator;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.util.DefaultParamsReader;
import org.apache.spark.ml.util.DefaultParamsWritable;
import org.apache.spark.ml.util.Identifiable$;
import org.apache.spark.ml.util.MLReader;
import org.apache.spark.ml.util.MLWriter;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Trains a Caffe net on a DataFrame, inside the executors that hold it. */
public final class CaffeEstimator extends Estimator<CaffeModel>
    implements CaffeParams, DefaultParamsWritable {
  private static final Logger LOG = LoggerFactory.getLogger(CaffeEstimator.class);

  private final String uid;
  private transient Dataset<Row> validation;

  /** An estimator with a uid of its own. */
  public CaffeEstimator() {
    this(Identifiable$.MODULE$.randomUID("CaffeEstimator"));
  }

  /** An estimator with the given uid. */
  public CaffeEstimator(String uid) {
    JavaVersion.require();
    this.uid = uid;
    setTrainingDefaults();
  }

  @Override
  public String uid() {
    return uid;
  }

  /**
   * Trains; where the net has layers that read files or databases, {@code data} feeds their tops
   * instead.
   */
  @Override
  public CaffeModel fit(Dataset<?> data) {
    requireConsistentParams();
    CaffeEstimator fed = fedByRows(Preprocessing.toTest(getPreprocessor(), data.toDF()));
    if (fed != this) return fed.fit(data).setParent(this);
    appendOutputs(data.schema());
    Dataset<Row> train = rows(data, false);
    Dataset<Row> test = getValidationIndicatorCol().isEmpty() ? validation : rows(data, true);
    train = Preprocessing.toTrain(getPreprocessor(), train);
    test = Preprocessing.toTest(getPreprocessor(), test);
    TrainingPlan plan = plan(train);
    if (test != null) plan.schema().requireTypesOf(test.schema(), "to test on");
    String netToPredict = netToPredict();
    TrainingResult result = trained(plan, train, test);
    return copyValues(new CaffeModel(uid, result), ParamMap.empty())
        .setNet(netToPredict)
        .setParent(this);
  }

  private TrainingResult trained(TrainingPlan plan, Dataset<Row> train, Dataset<Row> test) {
    try {
      return Run.of(chosenEngine(), plan, train, test, getPricePerCoreHour(), uid);
    } catch (RuntimeException e) {
      throw HeldOutRows.explained(e, getValidationIndicatorCol(), train, test);
    }
  }

  /**
   * Tells what a fit on these rows would do and take. Counts the rows; then trains for some seconds on a
   * few of them, on all executors that fit would use, and throws the weights away.
   */
  public Explanation explain(Dataset<?> data) {
    return explain(data, true);
  }

  /** The same; with {@code probe} false by the limits of an executor's machine instead of a training. */
  public Explanation explain(Dataset<?> data, boolean probe) {
    requireConsistentParams();
    CaffeEstimator fed = fedByRows(Preprocessing.toTest(getPreprocessor(), data.toDF()));
    if (fed != this) return fed.explain(data, probe);
    Dataset<Row> train = Preprocessing.toTrain(getPreprocessor(), rows(data, false));
    return new Explainer(plan(train), train).explain(probe ? this::chosenEngine : null);
  }

  /** The rows to train on, or those that validationIndicatorCol holds out. */
  private Dataset<Row> rows(Dataset<?> data, boolean held) {
    if (getValidationIndicatorCol().isEmpty()) return data.toDF();
    Column isHeld = HeldOutRows.of(data.schema(), getValidationIndicatorCol());
    return data.toDF().filter(held ? isHeld : functions.not(isHeld));
  }

  /**
   * Trains on what the net's own Data, ImageData or HDF5Data layer names, at a Hadoop path, and tests on
   * what that of its TEST phase names if the solver has a test_interval. The columns are {@code id},
   * {@code data} and {@code label}, whatever featuresCol, labelCol and idCol say. Several layers go in
   * step: a row has the n-th record of each, in columns of the names of their tops.
   *
   * @since 0.2.0
   */
  public CaffeModel fitFiles(SparkSession spark) {
    FileTable train =
        FileTable.open(spark, SourceLayer.of(getSolver(), getNet(), "TRAIN"), "");
    CaffeEstimator fed = copy(ParamMap.empty()).setFeaturesCol(train.data())
        .setLabelCol(train.label()).setIdCol(FileTable.ID)
        .setResize(getResize() || train.isResized());
    List<SourceLayer> tests = SourceLayer.of(getSolver(), getNet(), "TEST");
    boolean isTested = validation == null && getValidationIndicatorCol().isEmpty()
        && tests.stream().anyMatch(SourceLayer::isOfFiles)
        && fed.fedByRows(train.rows()).isTested();
    if (isTested) fed.setValidationData(FileTable.open(spark, tests, "").rows());
    return fed.fit(train.rows()).setParent(this);
  }

  /**
   * Tests on these rows, every test_interval steps of the solver or, where it has none, once an
   * epoch; null for none. The rows are no param: they are not saved with the estimator.
   */
  public CaffeEstimator setValidationData(Dataset<?> data) {
    validation = data == null ? null : data.toDF();
    return this;
  }

  @Override
  public StructType transformSchema(StructType schema) {
    requireConsistentParams();
    if (!RowNet.isNeeded(SourceLayer.of(getSolver(), getNet(), "TRAIN"))) {
      NetDescription net = NetDescription.of(getSolver(), getNet(), "TRAIN");
      feed(Preprocessing.schema(getPreprocessor(), schema), net, net.tops());
    }
    return appendOutputs(schema);
  }

  @Override
  public CaffeEstimator copy(ParamMap extra) {
    return copyValues(new CaffeEstimator(uid).setValidationData(validation), extra);
  }

  /** Writes the params alone; a warning tells of rows of {@link #setValidationData}, which are none. */
  @Override
  public MLWriter write() {
    if (validation != null) {
      LOG.warn("The rows of setValidationData are not saved with the estimator: call it again after"
          + " loading, or hold rows out by validationIndicatorCol, which is a param");
    }
    return DefaultParamsWritable.super.write();
  }

  /** Reads an estimator that was saved. */
  public static MLReader<CaffeEstimator> read() {
    return new DefaultParamsReader<>();
  }

  /** Loads an estimator that was saved. */
  public static CaffeEstimator load(String path) {
    return read().load(path);
  }

  /** This, or one whose net has layers that the table's rows feed in place of those of files. */
  private CaffeEstimator fedByRows(Dataset<?> data) {
    List<SourceLayer> layers = RowNet.layers(getSolver(), getNet());
    if (!RowNet.isNeeded(layers)) return this;
    RowNet rows = RowNet.of(getSolver(), getNet(), "TRAIN", layers, data.toDF(),
        SourceLayer.columns(layers, getFeaturesCol(), getLabelCol()));
    return copy(ParamMap.empty()).setSolver(rows.solver()).setNet(rows.net());
  }

  private boolean isTested() {
    return NetDescription.of(getSolver(), getNet(), "TRAIN").isTested();
  }

  /** What the ranks will be told; checks solver, net and columns. */
  TrainingPlan plan(Dataset<Row> train) {
    SparkSession spark = train.sparkSession();
    SparkContext sc = spark.sparkContext();
    Configuration conf = sc.hadoopConfiguration();
    int threads = threads(spark);
    SolverSettings settings = SolverSettings.of(this, conf);
    Findings findings = new Findings();
    ModelPart model =
        findings.file("weights", getWeights(), () -> ModelPart.readInOrder(getWeights(), spark));
    ModelPart state =
        findings.file("snapshot", getSnapshot(), () -> ModelPart.read(getSnapshot(), spark));
    NetDescription description = findings.of(() -> describe(settings));
    FeedSchema schema = description == null ? null
        : findings.of(() -> feed(train.schema(), description, tops(description)));
    if (!findings.isEmpty()) findings.add(Preflight.ofSettings(sc, this, !isOfRounds()));
    findings.refuse();
    Parallelism parallel = Parallelism.of(sc, getNumWorkers(), getShards());
    int shards = parallel.shards();
    if (description.wantsGpu()) {
      LOG.warn("GPUs are not supported yet; the CPU is used instead of what solver_mode asks for");
    }
    String solver = solverText(description);
    tellBatch(description, shards);
    if (description.hasSnapshots() && !SnapshotFiles.of(description).areWritten()) {
      LOG.info("The solver's snapshots are stored as checkpoints alone: make snapshot_prefix a path"
          + " that all executors reach, such as hdfs:///models/net, for Caffe's files");
    }
    boolean isValidated = validation != null || !getValidationIndicatorCol().isEmpty();
    Epochs epochs = Epochs.of(description, getEpochs(), isValidated);
    TrainingPlan plan = new TrainingPlan(solver, getNet(),
        schema.skippingBadRows(getSkipBadRows(), solver, getNet(), "TRAIN")
            .withMeans(MeanFiles.of(conf, solver, getNet())),
        parallel.workers(), shards, threads, getPrefetchThreads(), getMaxIter(), epochs, getSeed(), getCheckpointDir(),
        getCheckpointInterval(), model, state,
        getEvents(), getPeerTimeout(), Encryption.of(getEncrypt(), sc.getConf()), getConnection(),
        settings, getSurvivors(), getResume());
    // Survivors keep their rows to themselves, and begin before all have read theirs.
    return getSurvivors() && epochs.needRows() ? plan.ofRows(Epochs.rows(train)) : plan;
  }

  private String solverText(NetDescription description) {
    String solver = getNet().isEmpty() ? description.solverText() : getSolver();
    return getPrecision().isEmpty() ? solver
        : NetDescription.withField(solver, "precision", getPrecision());
  }

  /** By factories: an older Java that verifies this class need not load those of the engines. */
  private Engine chosenEngine() {
    if (isOfRounds()) return RoundsEngine.create();
    return getSurvivors() ? SurvivorEngine.create() : BarrierEngine.create();
  }

  private boolean isOfRounds() {
    return getEngine().equals(RoundsEngine.NAME);
  }

  /** The rows of a step grow with the shards, and these with the cluster where nobody set them. */
  private void tellBatch(NetDescription description, int shards) {
    long rows = description.batchSize() * description.iterSize() * shards;
    String sum = rows + " rows: the net's batch of " + description.batchSize() + " x " + shards
        + " shards" + (description.iterSize() > 1 ? " x iter_size " + description.iterSize() : "");
    if (getShards() > 0 || shards == 1) {
      LOG.info("A step takes {}", sum);
    } else {
      LOG.warn("A step takes {}, as many as there are workers, since shards is not set: set it, and"
          + " base_lr for that batch, so that the weights do not depend on the cluster", sum);
    }
  }

  private int threads(SparkSession spark) {
    return getThreadsPerWorker() > 0 ? getThreadsPerWorker()
        : spark.sparkContext().getConf().getInt("spark.task.cpus", 1);
  }

  /** Those of the net that is trained and, where it is tested, those that it has for tests alone. */
  private List<Top> tops(NetDescription trained) {
    List<Top> tops = trained.tops();
    if (validation == null && getValidationIndicatorCol().isEmpty()) return tops;
    Set<String> names = tops.stream().map(Top::name).collect(Collectors.toSet());
    NetDescription.of(getSolver(), getNet(), "TEST").requireOneBatch().tops().stream()
        .filter(top -> !names.contains(top.name())).forEach(tops::add);
    return tops;
  }

  /** Every top has its column. */
  private FeedSchema feed(StructType schema, NetDescription net, List<Top> tops) {
    List<FeedSchema.Input> inputs = new ArrayList<>();
    for (Top top : tops) {
      inputs.addAll(top.inputs(top.columnOf(getFeaturesCol(), getLabelCol())));
    }
    FeedSchema feed = FeedSchema.of(schema, inputs, getIdCol()).resizing(getResize());
    ColumnKinds.ofDescription(net.json()).require(feed.table());
    return feed;
  }

  private StructType appendOutputs(StructType schema) {
    return Outputs.of(outputs(), getPredictionCol(), getSkipBadRows()).append(schema);
  }

  /** The blobs that the model will add to a table. */
  private List<String> outputs() {
    List<String> asked = List.of(getOutputCols());
    // plan() says what is wrong, and transform() where the net is one to train alone.
    Optional<NetDescription> net =
        NetDescription.ifGood(() -> NetDescription.of("", netToPredict(), "TEST"));
    if (net.isEmpty()) return asked;
    net.get().requireBlobs("outputCols", asked);
    return asked.isEmpty() ? net.get().predictions() : asked;
  }

  /** The net that the solver tests with, where it has one or a state apart from what it trains. */
  private String netToPredict() {
    NetDescription trained = NetDescription.of(getSolver(), getNet(), "TRAIN");
    if (trained.hasTestNets() || trained.hasTestState()) {
      return NetDescription.of(getSolver(), getNet(), "TEST").netText();
    }
    return getNet().isEmpty() ? trained.netText() : getNet();
  }

  /** The one net that is trained. */
  private NetDescription describe(SolverSettings settings) {
    NetDescription description =
        NetDescription.ofTraining(getSolver(), getNet(), settings, getEpochs() > 0 || getMaxIter() > 0)
            .requireOneBatch();
    if (getNet().isEmpty() || !description.hasTestNets()) return description;
    throw new PreflightException(List.of("net is set, and the solver names test nets of its own,"
        + " which would not be used: let the solver name all its nets and leave net empty, or take"
        + " the test nets out of the solver"));
  }

  private void requireConsistentParams() {
    List<String> findings = new ArrayList<>();
    if (getRequireGpu()) {
      findings.add("requireGpu is set, and this version trains on the CPU alone: set it to false");
    }
    if (isOfRounds() && getSurvivors()) {
      findings.add("survivors is set and engine is rounds, which repeats what was lost: set one of"
          + " them only");
    }
    if (getEpochs() > 0 && getMaxIter() > 0) {
      findings.add("both epochs and maxIter are set: set the one that tells when to stop");
    }
    if (!getSnapshot().isEmpty() && getWeights().isEmpty()) {
      findings.add(
          "snapshot is set and weights is not: a solverstate goes with its caffemodel, set both");
    }
    if (getResume() && getCheckpointDir().isEmpty()) {
      findings.add("resume is set and checkpointDir is not: set it to the folder that the"
          + " interrupted fit used");
    }
    if (validation != null && !getValidationIndicatorCol().isEmpty()) {
      findings.add(
          "both setValidationData and validationIndicatorCol are used: use one of them");
    }
    if (!findings.isEmpty()) throw new PreflightException(findings);
  }
}
