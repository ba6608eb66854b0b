// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.plan;

import cafetiere.core.CafetiereException;
import cafetiere.core.Engine;
import cafetiere.spark.PreflightException;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.util.Json;
import cafetiere.spark.util.NearestName;
import com.esotericsoftware.kryo.DefaultSerializer;
import com.esotericsoftware.kryo.serializers.JavaSerializer;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * What the engine says of a solver and net, without running them.
 *
 * @param json the whole answer, as cft_describe gives it
 */
public record NetDescription(JsonNode json) {
  /** Of the engine's message about a layer whose shape is in a file. */
  private static final String FILE_LAYER = "it could not be opened here";
  private static final String ADVICE = ". On Spark a net is fed by the DataFrame and not by files or"
      + " databases: replace the layer by one of type MemoryData with the same name and tops and"
      + " memory_data_param { batch_size: 64 channels: 3 height: 227 width: 227 }, the sizes of your"
      + " rows, or by Input or CoSData; featuresCol and labelCol name the columns that feed it";

  /**
   * Asks the engine about a net, whether or not its solver says how long to train. A text that is "" is
   * not given.
   */
  public static NetDescription of(String solver, String net, String phase) {
    ObjectNode options = Json.object().put("phase", phase);
    if (!solver.isEmpty()) options.put("solver", solver).put("max_iter", 1);
    if (!net.isEmpty()) options.put("net", net);
    return of(options.toString());
  }

  /** Asks the engine about a training. */
  public static NetDescription ofTraining(TrainingPlan plan) {
    ObjectNode options = training(plan.solver(), plan.net(), plan.settings(),
        plan.maxIter() > 0 || plan.epochs().count() > 0);
    int ranks = Math.max(1, Math.min(plan.workers(), plan.shards()));
    return of(options.put("rank_shards", Math.max(1, (plan.shards() + ranks - 1) / ranks)).toString());
  }

  /** What the engine needs to know to explain a training, as in cft_explain. */
  public static String optionsOf(TrainingPlan plan) {
    return options(plan.solver(), plan.net(), plan.settings()).toString();
  }

  private static ObjectNode options(String solver, String net, SolverSettings settings) {
    ObjectNode options = Json.object().put("solver", solver);
    if (!net.isEmpty()) options.put("net", net);
    settings.addTo(options);
    return options;
  }

  /**
   * Asks the engine about a training. A net that is "" is not given.
   *
   * @param hasSteps whether something else than the solver says how long to train, so that it needs no
   *     max_iter
   */
  public static NetDescription ofTraining(
      String solver, String net, SolverSettings settings, boolean hasSteps) {
    return of(training(solver, net, settings, hasSteps).toString());
  }

  private static ObjectNode training(
      String solver, String net, SolverSettings settings, boolean hasSteps) {
    ObjectNode options = options(solver, net, settings).put("phase", "TRAIN");
    if (hasSteps) options.put("max_iter", 1);
    return options;
  }

  /**
   * Asks the engine; `options` as in cft_describe. Of a layer that reads files, such as Data, the
   * engine knows no shape here; a {@link PreflightException} says what to write instead.
   */
  public static NetDescription of(String options) {
    try {
      return new NetDescription(Json.parse(Engine.describe(options)));
    } catch (CafetiereException e) {
      if (!e.getMessage().contains(FILE_LAYER)) throw e;
      throw new PreflightException(List.of(e.getMessage() + ADVICE));
    }
  }

  /** What is asked for; none where it is refused. An older Java that verifies the caller loads no exceptions. */
  public static Optional<NetDescription> ifGood(Supplier<NetDescription> asked) {
    try {
      return Optional.of(asked.get());
    } catch (CafetiereException | PreflightException e) {
      return Optional.empty();
    }
  }

  /**
   * A top of a data layer.
   *
   * @param role "features" or "label" of the two that Params name the columns of; else ""
   * @param column the column that feeds it, where the layer says so; else ""
   * @param isOfClasses whether losses and accuracies take it for the number of a class
   * @param batch rows of a batch
   * @param cells of a TableData the columns that it makes the top of; else none
   * @param classes of a TableData the labels whose places the top holds; else none
   * @param kind of a TableData that of the first of its columns; else ""
   * @param isTarget whether a TableData says that only losses and scores read it
   * @param width numbers of a row
   */
  @DefaultSerializer(JavaSerializer.class) // Kryo cannot make a record
  public record Top(String name, String role, String column, boolean isOfClasses, long batch,
      List<String> cells, List<String> classes, String kind, boolean isTarget, long width)
      implements Serializable {
    static Top of(JsonNode json) {
      JsonNode shape = json.path("shape");
      return new Top(json.path("name").asText(), json.path("role").asText(""),
          json.path("column").asText(""), json.path("classes").asLong() > 0,
          json.path("batch").asLong(), texts(json.path("columns")), texts(json.path("values")),
          json.path("kinds").path(0).asText(""), json.path("target").asBoolean(),
          shape.size() < 2 ? 1 : shape.path(1).asLong());
    }

    public boolean isFeatures() {
      return role.equals("features");
    }

    /** Whether a table to predict need not have it, unless it is asked for. */
    public boolean isLabel(String labelCol) {
      if (cells.isEmpty() && column.isEmpty()) return role.equals("label");
      return isTarget || isOfClasses || cells.contains(labelCol);
    }

    /** How the top is fed, by {@code column} unless its layer names columns of a table. */
    public List<FeedSchema.Input> inputs(String column) {
      if (cells.isEmpty()) return List.of(new FeedSchema.Input(name, column));
      return cells.stream().map(cell -> new FeedSchema.Input(name, cell, true)).toList();
    }

    /** The column that the layer names, else that of the top's name. */
    public String ownColumn() {
      return column.isEmpty() ? name : column;
    }

    /** Its own column, else that for its role, else that of its name. */
    public String columnOf(String features, String label) {
      if (!column.isEmpty()) return column;
      return isFeatures() ? features : role.equals("label") ? label : name;
    }
  }

  /** The tops of the net's data layers, in order. */
  public List<Top> tops() {
    List<Top> tops = new ArrayList<>();
    json.path("data_layer").path("tops").forEach(top -> tops.add(Top.of(top)));
    return tops;
  }

  private static List<String> texts(JsonNode array) {
    List<String> texts = new ArrayList<>();
    array.forEach(text -> texts.add(text.asText()));
    return List.copyOf(texts);
  }

  /** Refuses a net whose data layers take batches of other sizes: a row of a table feeds them all. */
  public NetDescription requireOneBatch() {
    for (Top top : tops()) {
      if (top.batch() == batchSize()) continue;
      throw new PreflightException(List.of("top '" + top.name() + "' takes batches of " + top.batch()
          + " rows and '" + tops().get(0).name() + "' of " + batchSize()
          + ", but a row of the table feeds all tops of the data layers: make the batch sizes equal"));
    }
    return this;
  }

  /** Text of the net; in phase TEST with the level and the stages that the solver tests in. */
  public String netText() {
    return json.path("net_text").asText("");
  }

  /** Text of the solver with all its nets inside, "" if another net was given. */
  public String solverText() {
    return json.path("solver_text").asText("");
  }

  /** Whether the solver tests with nets of its own. */
  public boolean hasTestNets() {
    return json.path("solver").path("has_test_nets").asBoolean();
  }

  /** Whether the solver gives its test nets a level or stages. */
  public boolean hasTestState() {
    return json.path("solver").path("has_test_state").asBoolean();
  }

  /** Rows of one shard's batch. */
  public long batchSize() {
    return json.path("batch_size").asLong(1);
  }

  /** Refuses names of blobs that the net does not have; {@code from}: who gave them. */
  public NetDescription requireBlobs(String from, List<String> names) {
    List<String> there = json.path("blobs").findValuesAsText("name");
    for (String name : names) {
      if (there.contains(name)) continue;
      throw new PreflightException(List.of(from + " names '" + name + "', which is no blob of the net"
          + NearestName.among(there, name)));
    }
    return this;
  }

  /** The blobs that a predictor computes where nobody names any. */
  public List<String> predictions() {
    return texts(json.path("predictions"));
  }

  /** Whether one of these blobs has no place for each row of a batch. */
  public boolean haveNoRows(List<String> blobs) {
    for (JsonNode blob : json.path("blobs")) {
      boolean hasRows = false;
      for (JsonNode size : blob.path("shape")) hasRows |= size.asLong() == batchSize();
      if (!hasRows && blobs.contains(blob.path("name").asText())) return true;
    }
    return false;
  }

  /** Passes whose gradients are added up for a step. */
  public long iterSize() {
    return Math.max(1, json.path("solver").path("iter_size").asLong(1));
  }

  /** The way of working together that solver and sync settings name. */
  public String syncMode() {
    return json.path("solver").path("sync").asText("allreduce");
  }

  /** Steps from one test to the next, 0 if the solver does not say. */
  long testInterval() {
    return json.path("solver").path("test_interval").asLong();
  }

  /** Whether the solver tests at intervals. */
  public boolean isTested() {
    return testInterval() > 0;
  }

  /** The text of a solver with a number in one of its own fields, in place of what it has there. */
  static String withField(String solver, String field, long value) {
    String others = solver.replaceAll("(?m)(^|[\\s;,{}])" + field + "\\s*:\\s*-?\\d+", "$1");
    return others + "\n" + field + ": " + value + "\n";
  }

  /** The text of a solver with a string in one of its own fields, in place of what it has there. */
  public static String withField(String solver, String field, String value) {
    String others = solver.replaceAll("(?m)(^|[\\s;,{}])" + field
        + "\\s*:(\\s*(\"[^\"\n]*\"|'[^'\n]*'))+", "$1");
    return others + "\n" + field + ": \"" + value + "\"\n";
  }

  /** Whether the solver has an interval of its own for checkpoints. */
  public boolean hasSnapshots() {
    return snapshotInterval() > 0;
  }

  /** Steps from one snapshot to the next, 0 if the solver does not say. */
  public long snapshotInterval() {
    return json.path("solver").path("snapshot").asLong();
  }

  /** The begin of the snapshots' paths, "" if the solver does not say. */
  public String snapshotPrefix() {
    return json.path("solver").path("snapshot_prefix").asText("");
  }

  /** Whether the solver says snapshot_format: HDF5. */
  public boolean wantsHdf5() {
    return json.path("solver").path("snapshot_format").asText().equals("HDF5");
  }

  /** Bytes of native memory that a rank takes, without its rows: fewer where it is alone. */
  public long memoryBytes(TrainingPlan plan) {
    boolean isAlone = plan.shards() == 1 && !plan.survivors();
    return json.path(isAlone ? "memory_alone_bytes" : "memory_bytes").asLong();
  }

  /** Bytes of the weights. */
  public long weightBytes() {
    return json.path("parameters").asLong() * Float.BYTES;
  }

  /** Whether the solver says solver_mode: GPU. */
  public boolean wantsGpu() {
    return json.path("solver").path("solver_mode").asText().equals("GPU");
  }
}
