// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.spark.cost.Account;
import com.esotericsoftware.kryo.DefaultSerializer;
import com.esotericsoftware.kryo.serializers.JavaSerializer;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.util.List;
import java.util.Locale;

/**
 * What a training did, with the same fields for all engines: one that says nothing for an engine is 0,
 * false or empty. Trainings make it; its constructor is no interface, as fields are added to it.
 *
 * @param engine "barrier", "survivors", "rounds" or, with groupCol, "keys"; "" where the weights were
 *     trained elsewhere
 * @param steps iterations of the solver, with those before {@code firstStep}
 * @param firstStep the step that the fit began with: 0, or that of a snapshot or an interrupted run
 * @param attempts how often it began, the first time included; the rounds repeat no more than a round
 * @param rounds exchanges of weights by the engine "rounds"
 * @param rowsGiven rows of the table to train on
 * @param rowsSkipped rows that could not be fed and were left out, as skipBadRows asks; also of those to
 *     test on. With groupCol: rows of keys that have no net
 * @param rowsPerEpoch rows used in each epoch that was begun, in order, since the last attempt began; of
 *     survivors by each member's own count of epochs; with groupCol and maxIter none, since the epochs of
 *     keys differ
 * @param loss mean of the last losses, as the solver's average_loss says; NaN where it diverged
 * @param sha256 of the weights' caffemodel, in hex
 * @param shards parts of the rows, which the weights depend on; of survivors one a member
 * @param ranks tasks that trained side by side at the end; of rounds one a shard
 * @param executors those that had such a task
 * @param instructionSet what the engine computed with, such as "avx2"
 * @param peakBytes most memory of one rank's nets; 0 for rounds
 * @param encrypted whether what ranks send each other is encrypted; of rounds, what Spark sends
 * @param eventsBy how events came to the driver, in words; "" where none came
 * @param seconds of training, from the first step on, in the last attempt
 * @param rowsPerSecond rows used in them
 * @param fitSeconds from the call of fit to its result
 * @param secondsToFirstStep from the call of fit until a finished step was heard of; 0 if none was
 * @param membersAtStart survivors: members of the first view
 * @param membersAtEnd survivors: members of the last view
 * @param views survivors: how many views there were, one where nobody was lost
 * @param partitions survivors: what became of each partition
 * @param keys with groupCol: keys that have a net
 * @param failedKeys with groupCol: keys that have none; nets() tells why
 * @param account what the cores were used for
 * @param earlyStopping which test was the best, and whether the training ended early
 */
@DefaultSerializer(JavaSerializer.class) // Kryo cannot make a record
public record TrainingSummary(
    String engine,
    long steps,
    long firstStep,
    int attempts,
    long rounds,
    long rowsGiven,
    long rowsSkipped,
    List<Long> rowsPerEpoch,
    double loss,
    String sha256,
    int shards,
    int ranks,
    int executors,
    String instructionSet,
    long peakBytes,
    boolean encrypted,
    String eventsBy,
    double seconds,
    @JsonProperty("rows_per_s") double rowsPerSecond,
    double fitSeconds,
    double secondsToFirstStep,
    int membersAtStart,
    int membersAtEnd,
    int views,
    List<Partition> partitions,
    long keys,
    long failedKeys,
    Account account,
    EarlyStopping earlyStopping)
    implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final String LOSS = "loss";
  private static final ObjectMapper JSON = JsonMapper.builder()
      .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
      .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES).build();

  /**
   * What became of a partition of the rows among survivors.
   *
   * @param partition its number, from 0
   * @param rows how many it has
   * @param losses how often the member that had it was lost
   * @param stepsAway steps that the others took without it
   */
  public record Partition(int partition, long rows, int losses, long stepsAway)
      implements Serializable {
    private static final long serialVersionUID = 1L;
  }

  /**
   * What the tests came to where the solver asks for early stopping; else the curve is empty.
   *
   * @param output that of the test net that was watched
   * @param bestStep the step whose weights the model has
   * @param best what the output was then
   * @param interval steps from one test to the next; for tables an epoch
   * @param stopped whether the training ended since it got no better; else it came to its last step
   * @param curve the step and the output of each test, in order
   */
  public record EarlyStopping(String output, long bestStep, double best, long interval,
      boolean stopped, List<List<Double>> curve) implements Serializable {
    private static final long serialVersionUID = 1L;

    /** Nothing is null. */
    public EarlyStopping {
      output = output == null ? "" : output;
      curve = curve == null ? List.of() : List.copyOf(curve);
    }

    /** The number of the best test's epoch, where there is one test an epoch: 1 for the first. */
    @JsonProperty("best_epoch")
    public long bestEpoch() {
      return interval == 0 ? 0 : bestStep / interval;
    }
  }

  /** Nothing is null. */
  public TrainingSummary {
    engine = engine == null ? "" : engine;
    sha256 = sha256 == null ? "" : sha256;
    instructionSet = instructionSet == null ? "" : instructionSet;
    eventsBy = eventsBy == null ? "" : eventsBy;
    rowsPerEpoch = rowsPerEpoch == null ? List.of() : List.copyOf(rowsPerEpoch);
    partitions = partitions == null ? List.of() : List.copyOf(partitions);
    account = account == null ? Account.NONE : account;
    earlyStopping = earlyStopping == null ? new EarlyStopping("", 0, 0, 0, false, List.of()) : earlyStopping;
  }

  /** Epochs that were begun. */
  @JsonProperty("epochs")
  public int epochs() {
    return rowsPerEpoch.size();
  }

  /** Rows used, the same one again in each epoch. */
  @JsonProperty("rows_used")
  public long rowsUsed() {
    return rowsPerEpoch.stream().mapToLong(Long::longValue).sum();
  }

  /** The same with its account. */
  public TrainingSummary with(Account account) {
    return new TrainingSummary(engine, steps, firstStep, attempts, rounds, rowsGiven, rowsSkipped,
        rowsPerEpoch, loss, sha256, shards, ranks, executors, instructionSet, peakBytes, encrypted,
        eventsBy, seconds, rowsPerSecond, fitSeconds, secondsToFirstStep, membersAtStart,
        membersAtEnd, views, partitions, keys, failedKeys, account, earlyStopping);
  }

  /** "1,007 rows given, 3 left out; used 5,000 in 5 epochs, each row once an epoch". */
  public String rowsText() {
    String text = keysText() + String.format(Locale.ROOT, "%,d rows given", rowsGiven)
        + (rowsSkipped > 0 ? String.format(Locale.ROOT, ", %,d others left out", rowsSkipped) : "")
        + (keys > 0 && epochs() == 0 ? "" // each key had its own number of them
            : String.format(Locale.ROOT, "; %,d used in %d epochs", rowsUsed(), epochs()));
    List<Long> whole = rowsPerEpoch.subList(0, Math.max(0, epochs() - 1));
    boolean isExact = !whole.isEmpty() && whole.stream().allMatch(rows -> rows == rowsGiven);
    return isExact ? text + ", each row once in each whole epoch" : text;
  }

  private String keysText() {
    if (keys + failedKeys == 0) return "";
    String nets = String.format(Locale.ROOT, "%,d nets for %,d keys", keys, keys + failedKeys);
    return nets + (failedKeys == 0 ? "; " : " (nets() says why the others have none); ");
  }

  /** Reads what {@link #toJson} or an engine wrote; a field that is missing is empty. */
  public static TrainingSummary fromJson(String json) {
    try {
      ObjectNode fields = (ObjectNode) JSON.readTree(json);
      if (fields.path(LOSS).isNull()) fields.put(LOSS, Double.NaN);
      return JSON.treeToValue(fields, TrainingSummary.class);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not the summary of a training: " + json, e);
    }
  }

  /**
   * A JSON object with all fields by their names in snake_case, but for rows_per_s, which is
   * {@link #rowsPerSecond}, with epochs and rows_used; a loss that is no number is null.
   */
  public String toJson() {
    ObjectNode fields = JSON.valueToTree(this);
    if (!Double.isFinite(loss)) fields.putNull(LOSS);
    return fields.toString();
  }

  /** The same as {@link #toJson}. */
  @Override
  public String toString() {
    return toJson();
  }
}
