// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.submit;

import cafetiere.spark.util.NearestName;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

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

  private static final Set<String> SWITCHES = Set.of("train", "test", "persistent", "requireGpu",
      "survivors", "resume", "resize");
  private static final Set<String> VALUES = Set.of("conf", "net", "features", "label", "model",
      "output", "outputFormat", "clusterSize", "snapshot", "weights", "connection", "devices",
      "trainData", "testData", "dataCol", "labelCol", "idCol", "epochs", "shards", "checkpointDir",
      "checkpointInterval", "maxIter", "seed", "peerTimeout", "threadsPerWorker", "batchSize",
      "validationIndicatorCol", "events", "engine", "sync", "syncPeriod", "syncHistory",
      "syncOptions", "syncParamFile", "encrypt", "lmdb_partitions");
  private static final String NO_CONVERTERS = "it belongs to CaffeOnSpark's converters, which this"
      + " version does not have: write the table as parquet and pass it with -trainData, -testData";
  private static final Map<String, String> REFUSED = Map.of(
      "imageRoot", NO_CONVERTERS,
      "labelFile", NO_CONVERTERS,
      "captionFile", NO_CONVERTERS,
      "captionLength", NO_CONVERTERS,
      "vocabSize", NO_CONVERTERS,
      "imageCaptionDFDir", NO_CONVERTERS,
      "vocabDir", NO_CONVERTERS,
      "embeddingDFDir", NO_CONVERTERS);

  private final Map<String, String> given;

  private Flags(Map<String, String> given) {
    this.given = given;
  }

  /** Reads a command line. */
  static Flags parse(String... args) {
    Map<String, String> given = new LinkedHashMap<>();
    for (int i = 0; i < args.length; i++) {
      if (!args[i].startsWith("-") || args[i].length() < 2) {
        throw new UsageException("'" + args[i] + "' belongs to no flag; flags begin with '-'");
      }
      String name = args[i].substring(args[i].startsWith("--") ? 2 : 1);
      if (SWITCHES.contains(name)) {
        boolean spelt = i + 1 < args.length && args[i + 1].matches("(?i)true|false");
        String value = spelt ? args[++i].toLowerCase(Locale.ROOT) : "true";
        given.put(name, value);
      } else if (VALUES.contains(name)) {
        if (i + 1 == args.length) throw new UsageException("-" + name + " needs a value after it");
        given.put(name, args[++i]);
      } else {
        throw new UsageException(refusal(name));
      }
    }
    Flags flags = new Flags(given);
    flags.check();
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

  /** The flag's value as a whole number of at least {@code least}. */
  int getInt(String name, int otherwise, int least) {
    long value = getLong(name, otherwise, least);
    if (value <= Integer.MAX_VALUE) return (int) value;
    throw new UsageException("-" + name + " " + value + ": at most 2147483647 is possible");
  }

  /** The same where the numbers may be larger. */
  long getLong(String name, long otherwise, long least) {
    String text = given.get(name);
    if (text == null) return otherwise;
    try {
      long value = Long.parseLong(text);
      if (value >= least) return value;
    } catch (NumberFormatException e) {
      // Told below, in the same words as a number that is too small.
    }
    throw new UsageException(
        "-" + name + " " + text + ": a whole number of at least " + least + " is needed");
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
    String connection = get("connection", "ethernet");
    if (!Arrays.asList("ethernet", "infiniband").contains(connection.toLowerCase(Locale.ROOT))) {
      throw new UsageException("-connection " + connection + ": write ethernet or infiniband");
    }
    getInt("clusterSize", 1, 1);
    getInt("devices", 1, 1);
    getInt("epochs", 1, 1);
    getInt("shards", 1, 1);
    getInt("syncPeriod", 1, 1);
    getInt("peerTimeout", 1, 1);
    getInt("threadsPerWorker", 1, 1);
    getInt("batchSize", 1, 1);
    getInt("lmdb_partitions", 1, 1);
    getLong("maxIter", 1, 1);
    getLong("checkpointInterval", 1, 1);
    getLong("seed", 0, 0);
  }

  private static String refusal(String name) {
    if (REFUSED.containsKey(name)) return "-" + name + " is refused: " + REFUSED.get(name);
    List<String> known = new ArrayList<>(SWITCHES);
    known.addAll(VALUES);
    return "-" + name + " is not a flag; did you mean -" + NearestName.of(name, known).get() + "?";
  }
}
