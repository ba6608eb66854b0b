// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.internal;

import java.lang.reflect.InvocationTargetException;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkThrowable;
import org.apache.spark.ml.param.Params;
import org.apache.spark.ml.util.DefaultParamsReader$;
import org.apache.spark.ml.util.DefaultParamsWriter$;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * The one place that calls what Spark does not promise to keep. Everything here has the same form
 * in Spark 3.5 and 4.1 (there some of it is deprecated in favour of what 3.5 lacks), except for what
 * is looked up by name.
 */
@SuppressWarnings("deprecation")
public final class SparkInternals {
  private SparkInternals() {}

  /** A table's rows in Spark's binary format. Spark 4 moved the method into a subclass. */
  public static RDD<InternalRow> rows(Dataset<?> data) {
    try {
      Object execution = data.getClass().getMethod("queryExecution").invoke(data);
      return ((QueryExecution) execution).toRdd();
    } catch (InvocationTargetException e) {
      throw new IllegalStateException("cannot plan the table: " + e.getCause(), e.getCause());
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(
          "this DataFrame gives no access to its rows (" + data.getClass().getName()
              + "): use Spark 3.5 or 4 without Spark Connect", e);
    }
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

  /** Turns any internal row into a binary one. */
  public static UnsafeProjection unsafeProjection(StructType schema) {
    return UnsafeProjection.create(schema);
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
