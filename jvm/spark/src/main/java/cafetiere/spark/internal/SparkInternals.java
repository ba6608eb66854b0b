// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.internal;

import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Timer;
import java.util.function.BooleanSupplier;
import java.util.function.UnaryOperator;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkThrowable;
import org.apache.spark.ml.param.Params;
import org.apache.spark.ml.util.DefaultParamsReader$;
import org.apache.spark.ml.util.DefaultParamsWriter$;
import org.apache.spark.rdd.RDD;
import org.apache.spark.resource.ResourceProfile;
import org.apache.spark.scheduler.AccumulableInfo;
import org.apache.spark.scheduler.SparkListenerExecutorMetricsUpdate;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.Tuple4;
import scala.collection.Seq;

/**
 * What Spark does not promise to keep is called here and, for the layout of its rows, in {@link
 * UnsafeLayout}. Everything has the same form in Spark 3.5 and 4.1 (there some of it is deprecated in
 * favour of what 3.5 lacks), except for what is looked up by name. A look-up that finds nothing gives
 * an empty answer, and SparkInternalsTest fails on that line of Spark.
 */
@SuppressWarnings("deprecation")
public final class SparkInternals {
  private static final Logger LOG = LoggerFactory.getLogger(SparkInternals.class);
  private static final String TAGS = "spark.job.tags";
  static final String CANNOT_START = "Unable to create executor due to ";
  /** Beyond this the planner's figure is its way of saying that it does not know. */
  private static final long UNKNOWN_BYTES = 1L << 50;
  private static boolean timerIsDaemon;

  private SparkInternals() {}

  /** A table's rows in Spark's binary format. */
  public static RDD<InternalRow> rows(Dataset<?> data) {
    try {
      return execution(data).toRdd();
    } catch (InvocationTargetException e) {
      throw new IllegalStateException("cannot plan the table: " + e.getCause(), e.getCause());
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(
          "this DataFrame gives no access to its rows (" + data.getClass().getName()
              + "): use Spark 3.5 or 4 without Spark Connect", e);
    }
  }

  /**
   * A table of rows in Spark's binary format, whose plan begins with them: to Spark's cache it is a table of
   * its own, whatever they were made of. The method of classic sessions, whose class moved in Spark 4.
   */
  @SuppressWarnings("unchecked")
  public static Dataset<Row> table(SparkSession spark, RDD<InternalRow> rows, StructType schema) {
    try {
      return (Dataset<Row>) spark.getClass()
          .getMethod("internalCreateDataFrame", RDD.class, StructType.class, boolean.class)
          .invoke(spark, rows, schema, false);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("this version of Spark makes tables in another way (" + e
          + "): use Spark 3.5 or 4.1 without Spark Connect", e);
    }
  }

  /** The planner's estimate of a table's size in bytes; empty if it has none. */
  public static OptionalLong tableBytes(Dataset<?> table) {
    try {
      var size = execution(table).optimizedPlan().stats().sizeInBytes();
      boolean known = size.isValidLong() && size.toLong() < UNKNOWN_BYTES;
      return known ? OptionalLong.of(size.toLong()) : OptionalLong.empty();
    } catch (ReflectiveOperationException e) {
      return OptionalLong.empty();
    }
  }

  /** Whether names of columns that differ in case alone are different ones, in this thread's session. */
  public static boolean isCaseSensitive() {
    return SQLConf.get().caseSensitiveAnalysis();
  }

  /** Spark 4 moved the method into a subclass. */
  static QueryExecution execution(Dataset<?> data) throws ReflectiveOperationException {
    return (QueryExecution) data.getClass().getMethod("queryExecution").invoke(data);
  }

  /**
   * How many tasks can run at once: the number that Spark itself compares a barrier stage with. It
   * keeps the method to itself, so it is called by name; empty where a version lacks it.
   */
  public static OptionalInt taskSlots(SparkContext sc) {
    try {
      Object manager = SparkContext.class.getMethod("resourceProfileManager").invoke(sc);
      Object profile = manager.getClass().getMethod("defaultResourceProfile").invoke(manager);
      Method slots = SparkContext.class.getMethod("maxNumConcurrentTasks", ResourceProfile.class);
      return OptionalInt.of((int) slots.invoke(sc, profile));
    } catch (ReflectiveOperationException e) {
      return OptionalInt.empty();
    }
  }

  /**
   * This task of a barrier stage. Spark 3.5 gives barrier() a timer whose thread keeps its JVM: with
   * local[*], where tasks run in the driver's, a program would not end with its main(). It gets a
   * daemon instead, as Spark 4 has.
   */
  public static synchronized BarrierTaskContext barrierTask() {
    BarrierTaskContext task = BarrierTaskContext.get();
    if (timerIsDaemon) return task;
    timerIsDaemon = true;
    try {
      Class<?> companion = Class.forName("org.apache.spark.BarrierTaskContext$");
      Field timer = companion.getDeclaredField("org$apache$spark$BarrierTaskContext$$timer");
      if (timer.getType() != Timer.class) return task;
      timer.setAccessible(true);
      Object shared = companion.getField("MODULE$").get(null);
      Timer before = (Timer) timer.get(shared);
      timer.set(shared, new Timer("Barrier task timer for barrier() calls.", true));
      before.cancel();
    } catch (ReflectiveOperationException | RuntimeException e) {
      LOG.debug("Spark's timer of barrier stages stays as it is", e);
    }
    return task;
  }

  /** Spark's id of the executor that runs this task. */
  public static String executorId() {
    return SparkEnv.get().executorId();
  }

  /**
   * Whether the application of the caller still runs in this process, to be asked again. A driver with
   * local[n] outlives it, and Spark does not kill its tasks there.
   */
  public static BooleanSupplier application() {
    SparkEnv begun = SparkEnv.get();
    return () -> SparkEnv.get() == begun;
  }

  /** The name of its host, as other executors know it. */
  public static String executorHost() {
    return SparkEnv.get().blockManager().blockManagerId().host();
  }

  /** Where Spark puts what it cannot keep in memory, on this machine; with much room. */
  public static Path localFolder() {
    File[] folders = SparkEnv.get().blockManager().diskBlockManager().localDirs();
    return folders[0].toPath().toAbsolutePath().getParent();
  }

  /** The settings that it was started with. */
  public static SparkConf executorConf() {
    return SparkEnv.get().conf();
  }

  /** Where this executor keeps its blocks on disk; one at least. */
  public static File[] localFolders() {
    return SparkEnv.get().blockManager().diskBlockManager().localDirs();
  }

  /** Whether a stage belongs to a job with this tag; none has "". */
  public static boolean isTagged(SparkListenerStageSubmitted stage, String tag) {
    Properties properties = stage.properties();
    String tags = properties == null ? "" : properties.getProperty(TAGS, "");
    return !tag.isEmpty() && List.of(tags.split(",")).contains(tag);
  }

  /**
   * The accumulators of running tasks that a heartbeat tells of. {@code accumUpdates} returns another
   * Seq class in each Scala line, so it is called by name; none where a version lacks it.
   */
  public static List<AccumulableInfo> accumulators(SparkListenerExecutorMetricsUpdate heartbeat) {
    List<AccumulableInfo> found = new ArrayList<>();
    try {
      Object tasks = heartbeat.getClass().getMethod("accumUpdates").invoke(heartbeat);
      for (var task = ((Seq<?>) tasks).iterator(); task.hasNext();) {
        var infos = ((Seq<?>) ((Tuple4<?, ?, ?, ?>) task.next())._4()).iterator();
        while (infos.hasNext()) found.add((AccumulableInfo) infos.next());
      }
    } catch (ReflectiveOperationException e) {
      LOG.debug("heartbeats of this Spark version carry no accumulators", e);
    }
    return found;
  }

  /** Why an executor ended as it started, in Spark's words; empty if it ended otherwise. */
  public static Optional<String> failedStart(SparkListenerExecutorRemoved removed) {
    String reason = removed.reason();
    return reason.startsWith(CANNOT_START)
        ? Optional.of(reason.substring(CANNOT_START.length())) : Optional.empty();
  }

  /**
   * What became of the task that made a job fail. Spark names the stage and task first, and tells that
   * in a second line.
   */
  public static String tellingLine(Throwable failure) {
    String message = String.valueOf(failure.getMessage());
    List<String> lines = message.lines().limit(2).toList();
    boolean second = lines.size() > 1 && !lines.get(1).isBlank() && !lines.get(1).startsWith("\t");
    return lines.isEmpty() ? message : lines.get(second ? 1 : 0);
  }

  /** Has an executor killed and another one started, where the cluster manager can do that. */
  public static void replaceExecutor(SparkContext sc, String executor) {
    sc.killAndReplaceExecutor(executor);
  }

  /** Waits until listeners have heard all that has happened so far; false: that takes longer. */
  public static boolean awaitEvents(SparkContext sc, long millis) {
    try {
      sc.listenerBus().waitUntilEmpty(millis);
      return true;
    } catch (Exception e) {  // a TimeoutException or InterruptedException: Scala declares neither
      if (e instanceof InterruptedException) Thread.currentThread().interrupt();
      return false;
    }
  }

  /**
   * Whether a job failed because somebody cancelled it. Spark 4 gives that a name; Spark 3.5 says it
   * in words only.
   */
  public static boolean isCancelled(Throwable failure) {
    if (!(failure instanceof SparkThrowable spark)) return false;
    String name = spark.getErrorClass();
    return name != null ? name.equals("SPARK_JOB_CANCELLED")
        : String.valueOf(failure.getMessage()).matches("(?s)Job \\d+ cancelled.*");
  }

  /** Whether Spark has a name for a failure, in whose words it tells a user what is wrong. */
  public static boolean isTold(Throwable failure) {
    if (!(failure instanceof SparkThrowable spark)) return false;
    return spark.getErrorClass() != null && !spark.getErrorClass().startsWith("INTERNAL_ERROR");
  }

  /** Refuses a name that is none of a data source, in Spark's words. */
  public static void requireFormat(String name) {
    DataSource.lookupDataSource(name, SQLConf.get());
  }

  /** Cancels the jobs with a tag; those of a context that was stopped are over. */
  public static void cancelJobs(SparkContext sc, String tag) {
    try {
      sc.cancelJobsWithTag(tag);
    } catch (IllegalStateException e) {
      if (!sc.isStopped()) throw e;
    }
  }

  /** Turns any internal row into a binary one. */
  public static UnsafeProjection unsafeProjection(StructType schema) {
    return UnsafeProjection.create(schema);
  }

  /**
   * A function of Spark's rows as one of binary rows, from those of the schema {@code given} to those of
   * {@code made}. The row that it gives lies in the memory of the one before.
   */
  public static UnaryOperator<UnsafeRow> binary(
      StructType given, StructType made, UnaryOperator<Row> function) {
    var external = CatalystTypeConverters.createToScalaConverter(given);
    var internal = CatalystTypeConverters.createToCatalystConverter(made);
    UnsafeProjection projection = unsafeProjection(made);
    return row -> projection.apply(
        (InternalRow) internal.apply(function.apply((Row) external.apply(row))));
  }

  /** Writes uid, class and params as Spark ML's own stages do. */
  public static void saveMetadata(Params stage, String path, SparkContext sc) {
    DefaultParamsWriter$.MODULE$.saveMetadata(stage, path, sc, Option.empty(), Option.empty());
  }

  /** The uid of a saved stage. */
  public static String savedUid(String path, SparkContext sc, Class<?> type) {
    return DefaultParamsReader$.MODULE$.loadMetadata(path, sc, type.getName()).uid();
  }

  /** Sets the params of a saved stage. */
  public static void loadParams(Params stage, String path, SparkContext sc) {
    DefaultParamsReader$.MODULE$.loadMetadata(path, sc, stage.getClass().getName())
        .getAndSetParams(stage, Option.empty());
  }
}
