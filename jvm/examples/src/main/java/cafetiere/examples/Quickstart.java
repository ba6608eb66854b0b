// SPDX-License-Identifier: Apache-2.0
package cafetiere.examples;

import static org.apache.spark.sql.functions.avg;
import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;

import cafetiere.core.Engine;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.CaffeModel;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.ml.classification.LogisticRegression;
import org.apache.spark.ml.classification.LogisticRegressionModel;
import org.apache.spark.ml.functions;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Trains a net on a table of images, predicts the held-out rows, fits Spark ML's logistic
 * regression on the features of an inner blob, and leaves model, predictions, figures and a report
 * in a folder.
 */
public final class Quickstart {
  private static final String FEATURES = "ip1";
  private static final List<String> REQUIRED = List.of("train", "test", "solver", "net", "out");
  private static final String USAGE = "usage: Quickstart --train PATH --test PATH --solver FILE"
      + " --net FILE --out DIR [--epochs N] [--executors N] [--shards N] [--setup SECONDS]";
  /** Given, so that Spark starts no job to read it from the files. */
  private static final String TABLE = "id LONG, image BINARY, label INT";
  private static final int REGRESSION_STEPS = 20;

  private final SparkSession spark;
  private final Map<String, String> args;
  private final Path out;
  private final ObjectNode split = new ObjectMapper().createObjectNode();
  private long lap = ManagementFactory.getRuntimeMXBean().getStartTime();

  private Quickstart(SparkSession spark, Map<String, String> args) {
    this.spark = spark;
    this.args = args;
    this.out = Path.of(args.get("out"));
  }

  /** Runs the example. */
  public static void main(String[] words) throws IOException {
    Map<String, String> args = parse(words);
    if (args == null) {
      System.err.println(USAGE);
      System.exit(2);
    }
    SparkSession spark = SparkSession.builder().appName("cafetiere quickstart").getOrCreate();
    try {
      new Quickstart(spark, args).run();
    } finally {
      spark.stop();
    }
  }

  private void run() throws IOException {
    split.put("setup", Double.parseDouble(args.getOrDefault("setup", "0")));
    took("session");
    Dataset<Row> train = spark.read().schema(TABLE).parquet(args.get("train"));
    Dataset<Row> test = spark.read().schema(TABLE).parquet(args.get("test"));
    int executors = Integer.parseInt(args.getOrDefault("executors", "2"));
    CaffeModel model = new CaffeEstimator()
        .setSolver(Files.readString(Path.of(args.get("solver"))))
        .setNet(Files.readString(Path.of(args.get("net"))))
        .setFeaturesCol("image").setLabelCol("label").setIdCol("id")
        .setNumWorkers(executors)
        .setShards(Integer.parseInt(args.getOrDefault("shards", "2")))
        .setEpochs(Integer.parseInt(args.getOrDefault("epochs", "0")))
        .setValidationData(test)
        .fit(train);
    model.setOutputCols("ip2", FEATURES);

    took("training");
    ObjectNode result = (ObjectNode) new ObjectMapper().readTree(model.result());
    Dataset<Row> predicted = predict(model, test, result);
    took("prediction");
    regress(model, train, predicted, result);
    took("regression");
    result.set("wall_seconds", split);
    write(model, result);
    summarize(result);
  }

  /** Notes the seconds since the last part ended; the first one began with this JVM. */
  private void took(String part) {
    long now = System.currentTimeMillis();
    split.put(part, (now - lap) / 1e3);
    lap = now;
  }

  /** Every held-out row in order, with its id, prediction and features, as parquet. */
  private Dataset<Row> predict(CaffeModel model, Dataset<Row> test, ObjectNode result) {
    String path = "file:" + out.resolve("predictions.parquet").toAbsolutePath();
    Dataset<Row> rows =
        model.transform(test).select("id", "label", "prediction", "ip2", FEATURES);
    rows.write().mode("overwrite").parquet(path);
    Dataset<Row> predicted = spark.read().schema(rows.schema()).parquet(path);
    Row figures = predicted.agg(count("*"), accuracy()).first();
    result.put("rows_predicted", figures.getLong(0));
    result.put("accuracy", figures.getDouble(1));
    return predicted;
  }

  /** The net's features are good enough for a linear model: what CaffeOnSpark's example showed. */
  private static void regress(CaffeModel model, Dataset<Row> train, Dataset<Row> held,
      ObjectNode result) {
    Dataset<Row> rows = features(model.transform(train)).cache();
    LogisticRegressionModel regression =
        new LogisticRegression().setMaxIter(REGRESSION_STEPS).fit(rows);
    rows.unpersist();
    Row figures = regression.transform(features(held)).agg(accuracy()).first();
    result.put("regression_accuracy", figures.getDouble(0));
  }

  private static Dataset<Row> features(Dataset<Row> rows) {
    return rows.select(functions.array_to_vector(col(FEATURES)).as("features"),
        col("label").cast("double").as("label"));
  }

  private static Column accuracy() {
    return avg(col("prediction").equalTo(col("label")).cast("double"));
  }

  private void write(CaffeModel model, ObjectNode result) throws IOException {
    Files.createDirectories(out);
    Files.write(out.resolve("lenet.caffemodel"), model.weights());
    Files.write(out.resolve("lenet.solverstate"), model.solverState());
    Files.writeString(out.resolve("events.jsonl"), model.events());
    Path counts = Path.of(args.get("train")).resolveSibling("counts.json");
    if (Files.exists(counts)) {
      result.set("class_counts", new ObjectMapper().readTree(Files.readString(counts)));
    }
    Files.writeString(out.resolve("result.json"), result.toPrettyString() + "\n");
    Files.writeString(out.resolve("report.html"),
        Engine.report(model.events(), result.toString()));
  }

  private void summarize(ObjectNode result) {
    List<String> lines = new ArrayList<>();
    lines.add(line("accuracy on held-out rows", percent(result, "accuracy")));
    lines.add(line("logistic regression on " + FEATURES, percent(result, "regression_accuracy")));
    lines.add(line("rows given, predicted",
        result.path("rows_given").asText() + ", " + result.path("rows_predicted").asText()));
    lines.add(line("steps, epochs",
        result.path("steps").asText() + ", " + result.path("epochs").asText()));
    lines.add(line("executors", result.path("executors").asText()));
    lines.add(line("training", String.format(Locale.ROOT, "%.1f s, %,.0f rows/s",
        result.path("seconds").asDouble(), result.path("rows_per_s").asDouble())));
    lines.add(line("from fit to first step",
        String.format(Locale.ROOT, "%.1f s", result.path("seconds_to_first_step").asDouble())));
    lines.add(line("seconds by part", parts()));
    lines.add(line("sha256 of the weights", result.path("sha256").asText()));
    lines.add(line("written to", out.toString()));
    System.out.println(String.join("\n", lines));
  }

  private String parts() {
    List<String> parts = new ArrayList<>();
    split.fieldNames().forEachRemaining(part ->
        parts.add(String.format(Locale.ROOT, "%s %.1f", part, split.path(part).asDouble())));
    return String.join(", ", parts);
  }

  private static String line(String name, String value) {
    return String.format(Locale.ROOT, "  %-32s %s", name, value);
  }

  private static String percent(ObjectNode result, String name) {
    return String.format(Locale.ROOT, "%.2f %%", 100 * result.path(name).asDouble());
  }

  /** The arguments by name; null if they are not complete. */
  private static Map<String, String> parse(String[] words) {
    Map<String, String> args = new TreeMap<>();
    for (int i = 0; i + 1 < words.length; i += 2) {
      if (!words[i].startsWith("--")) return null;
      args.put(words[i].substring(2), words[i + 1]);
    }
    return words.length % 2 == 0 && args.keySet().containsAll(REQUIRED) ? args : null;
  }
}
