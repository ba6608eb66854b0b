// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.preflight;

import cafetiere.core.CafetiereException;
import cafetiere.core.Engine;
import cafetiere.spark.internal.SparkInternals;
import com.esotericsoftware.kryo.DefaultSerializer;
import com.esotericsoftware.kryo.serializers.JavaSerializer;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.util.SerializableConfiguration;

/** What keeps executors from training, tried in one task for each rank: they may run on each other. */
final class ExecutorCheck {
  /** What Java says where a task's classes are missing. */
  private static final List<String> NO_CLASS =
      List.of("ClassNotFoundException: cafetiere.", "instance of java.lang.invoke.SerializedLambda");

  private ExecutorCheck() {}

  /**
   * What a task found.
   *
   * @param executor as users know it
   * @param engine why it cannot load the engine, "" if it can
   * @param blind whether it does not see the probe
   */
  @DefaultSerializer(JavaSerializer.class) // Kryo cannot make a record
  record Answer(String executor, String engine, boolean blind) implements Serializable {}

  /**
   * One sentence for each fault, whichever executors have it.
   *
   * @param probe a file in the checkpoint folder that all should see, null to leave that out
   */
  static List<String> find(SparkContext sc, int tasks, Path probe) {
    List<Integer> numbers = IntStream.range(0, tasks).boxed().toList();
    Look look = new Look(probe == null ? "" : probe.toString(),
        new SerializableConfiguration(sc.hadoopConfiguration()));
    List<Answer> answers;
    try {
      answers = JavaSparkContext.fromSparkContext(sc).parallelize(numbers, tasks).map(look)
          .collect();
    } catch (Exception e) {  // a SparkException, which Scala does not declare
      String message = String.valueOf(e.getMessage());
      if (NO_CLASS.stream().anyMatch(message::contains)) return List.of(noClasses());
      throw e;
    }
    List<String> findings = new ArrayList<>();
    Map<String, TreeSet<String>> faults = new TreeMap<>();
    TreeSet<String> blind = new TreeSet<>();
    for (Answer answer : answers) {
      if (answer.blind()) blind.add(answer.executor());
      if (!answer.engine().isEmpty()) {
        faults.computeIfAbsent(answer.engine(), key -> new TreeSet<>()).add(answer.executor());
      }
    }
    faults.forEach((fault, where) ->
        findings.add(String.join(", ", where) + " cannot run the engine: " + fault));
    if (!blind.isEmpty()) findings.add(notSeen(sc, probe, blind));
    return findings;
  }

  /** Why the engine does not run in this process. */
  static Optional<String> engineFault() {
    try {
      Engine.useInstructionSet(Engine.instructionSet());  // the first call that needs the processor
      return Optional.empty();
    } catch (CafetiereException e) {
      boolean isPlace = e.getMessage().contains("-Djava.io.tmpdir");
      return Optional.of(e.getMessage() + (isPlace
          ? "; add --conf spark.executor.extraJavaOptions=-Djava.io.tmpdir=FOLDER" : ""));
    }
  }

  private static String noClasses() {
    return "the executors do not find Cafetiere's classes: add --jars cafetiere-spark.jar";
  }

  private static String notSeen(SparkContext sc, Path probe, TreeSet<String> blind) {
    return "checkpoints would go to " + probe.getParent().getParent() + ", which is a folder of one"
        + " machine and not seen by " + String.join(", ", blind) + ": set checkpointDir to a folder of"
        + " a shared file system, such as hdfs:///user/" + sc.sparkUser() + "/checkpoints";
  }

  /** What each task does. */
  private static final class Look implements Function<Integer, Answer> {
    private static final long serialVersionUID = 1L;
    private final String probe;
    private final SerializableConfiguration conf;

    Look(String probe, SerializableConfiguration conf) {
      this.probe = probe;
      this.conf = conf;
    }

    @Override
    public Answer call(Integer number) throws Exception {
      String executor =
          "executor " + SparkInternals.executorId() + " on " + SparkInternals.executorHost();
      boolean blind = false;
      if (!probe.isEmpty()) {
        Path path = new Path(probe);
        blind = !path.getFileSystem(conf.value()).exists(path);
      }
      return new Answer(executor, engineFault().orElse(""), blind);
    }
  }
}
