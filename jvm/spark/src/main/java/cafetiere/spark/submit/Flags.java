// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.submit;

import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.util.NearestName;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.spark.ml.param.Params;

/**
 * The command line of {@code Submit}: CaffeOnSpark's single-dash flags and those that Cafetiere
 * adds. What is not understood is refused, with the flag that was probably meant.
 */
final class Flags {
  /** A command line that cannot be followed; the text says what to write instead. */
  static final class UsageException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    UsageException(String message) {
      super(message);
    }
  }

  /** A part of what -help prints. */
  private record Part(String title, List<Flag> flags) {}

  private static final List<Part> PARTS = List.of(
      new Part("What to do", List.of(
          Flag.of("train", "", "Train, and write the model and a snapshot of the end."),
          Flag.of("test", "", "Write the mean of each output of the TEST net."),
          Flag.of("features", "BLOB,...", "Write these blobs for each row."),
          Flag.of("label", "BLOB", "With -features: one more blob, the label."),
          Flag.of("help", "", "Print this text."))),
      new Part("Files and tables", List.of(
          Flag.of("conf", "FILE", "The solver."),
          Flag.of("net", "FILE", "The net. Without it: the net that the solver names."),
          Flag.of("model", "PATH", "The model that -train writes and -test and -features read."),
          Flag.of("trainData", "PATH", "Table to train on. Without it: the data layer's source."),
          Flag.of("testData", "PATH", "Table to test on or to extract features from, likewise."),
          Flag.of("lmdb_partitions", "N", "Tasks that read an LMDB source. Default: Spark's own."),
          Flag.of("output", "PATH", "Where -test and -features write. Default: output."),
          Flag.of("outputFormat", "WORD", "Spark's name of the features' format. Default: json."))),
      new Part("Columns and training (docs/params.md)", Flag.ofParams()),
      new Part("Of CaffeOnSpark's scripts", List.of(
          Flag.of("devices", "N", "Shards of each worker, in place of shards: on the CPU each stands"
              + " for a GPU. Default: 1."),
          Flag.of("persistent", "", "Keep the table to train on on Spark's disks, so that its source"
              + " is read once."))));
  private static final Map<String, Flag> KNOWN = PARTS.stream()
      .flatMap(part -> part.flags().stream())
      .collect(Collectors.toMap(Flag::name, Function.identity()));
  private static final String OF_TOOLS = "it belongs to the tools: run one with spark-submit --class"
      + " com.yahoo.ml.caffe.tools.Binary2Sequence, Binary2DataFrame, LMDB2Sequence, LMDB2DataFrame or"
      + " CocoDataSetConverter, of the jar cafetiere-all";
  private static final Map<String, String> REFUSED = Map.of(
      "imageRoot", OF_TOOLS,
      "labelFile", OF_TOOLS,
      "captionFile", OF_TOOLS,
      "captionLength", OF_TOOLS,
      "vocabSize", OF_TOOLS,
      "imageCaptionDFDir", OF_TOOLS,
      "vocabDir", OF_TOOLS,
      "embeddingDFDir", OF_TOOLS);

  private final Map<String, String> given;

  private Flags(Map<String, String> given) {
    this.given = given;
  }

  /** Reads a command line. */
  static Flags parse(String... args) {
    Map<String, String> given = new LinkedHashMap<>();
    for (int i = 0; i < args.length; i++) {
      if (!args[i].startsWith("-") || args[i].length() < 2) {
        throw new UsageException(belongsToNone(args[i], i == 0 ? "" : args[i - 1]));
      }
      String name = args[i].substring(args[i].startsWith("--") ? 2 : 1);
      Flag flag = KNOWN.get(name);
      if (flag == null) throw new UsageException(refusal(name));
      if (flag.isSwitch()) {
        boolean spelt = i + 1 < args.length && args[i + 1].matches("(?i)true|false");
        String value = spelt ? args[++i].toLowerCase(Locale.ROOT) : "true";
        given.put(name, value);
      } else {
        if (i + 1 == args.length) throw new UsageException("-" + name + " needs a value after it");
        String next = args[i + 1];
        if (next.startsWith("-") && KNOWN.containsKey(next.replaceFirst("^--?", ""))) {
          throw new UsageException(
              "-" + name + " needs a value after it, and the flag " + next + " follows");
        }
        given.put(name, args[++i]);
      }
    }
    Flags flags = new Flags(given);
    if (!flags.has("help")) flags.check();
    return flags;
  }

  /** True if the switch is set, or the flag has a value. */
  boolean has(String name) {
    return given.containsKey(name) && !given.get(name).equals("false");
  }

  /** The flag's value, or {@code otherwise}. */
  String get(String name, String otherwise) {
    return given.getOrDefault(name, otherwise);
  }

  /** Sets those params of {@code stage} that were given, and returns it. */
  <T extends Params> T setParams(T stage) {
    given.forEach((name, value) -> KNOWN.get(name).set(stage, value));
    return stage;
  }

  /** What -help prints: every flag and what it says. */
  static String help() {
    StringBuilder text = new StringBuilder("usage: -conf FILE -model PATH"
        + " (-train | -test | -features BLOB,...) [flags]\n");
    for (Part part : PARTS) {
      text.append('\n').append(part.title()).append(":\n");
      part.flags().forEach(flag -> text.append(flag.help()));
    }
    return text.toString();
  }

  /** The blobs of -features, with that of -label behind them. */
  List<String> featureBlobs() {
    List<String> blobs = new ArrayList<>();
    for (String blob : get("features", "").split(",")) {
      if (!blob.isBlank()) blobs.add(blob.trim());
    }
    String label = get("label", "");
    if (!label.isEmpty() && !blobs.contains(label)) blobs.add(label);
    return blobs;
  }

  private void check() {
    if (!has("conf")) throw new UsageException("-conf SOLVER is missing: the solver's prototxt");
    if (!has("train") && !has("test") && !has("features")) {
      throw new UsageException("nothing to do: give -train, -test or -features BLOB,...");
    }
    if (!has("model")) {
      throw new UsageException("-model PATH is missing: the model to write by -train, or to read by"
          + " -test and -features");
    }
    if (has("snapshot") && !has("weights")) {
      throw new UsageException("-snapshot " + get("snapshot", "")
          + " needs the model that was saved with it: add -weights PATH");
    }
    if (has("features") && get("output", "").isEmpty()) given.put("output", "output");
    // CaffeOnSpark took these words in any case.
    given.computeIfPresent("connection", (flag, word) -> word.toLowerCase(Locale.ROOT));
    for (String count : List.of("devices", "lmdb_partitions")) {
      if (get(count, "1").matches("[1-9]\\d{0,8}")) continue;
      throw new UsageException(
          "-" + count + " " + get(count, "") + ": a whole number of at least 1 is needed");
    }
    if (has("shards") && !get("devices", "1").equals("1")) {
      throw new UsageException("both -shards and -devices are given: -devices N stands for N shards"
          + " a worker, give one of them only");
    }
    setParams(new CaffeEstimator());
  }

  private static String belongsToNone(String word, String before) {
    String table = before.replaceFirst("^--?", "") + "Data";
    return "'" + word + "' belongs to no flag; " + (KNOWN.containsKey(table)
        ? before + " takes no value, and -" + table + " names the table" : "flags begin with '-'");
  }

  private static String refusal(String name) {
    if (REFUSED.containsKey(name)) return "-" + name + " is refused: " + REFUSED.get(name);
    return "-" + name + " is not a flag; " + NearestName.of(name, KNOWN.keySet())
        .map(nearest -> "did you mean -" + nearest + "? ").orElse("") + "-help lists them all";
  }
}
