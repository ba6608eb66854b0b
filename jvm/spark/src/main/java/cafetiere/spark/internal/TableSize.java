// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.internal;

import java.util.OptionalLong;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.execution.QueryExecution;

/** What Spark's planner thinks of the size of a table. */
public final class TableSize {
  /** Beyond this the planner's figure is its way of saying that it does not know. */
  private static final long UNKNOWN = 1L << 50;

  private TableSize() {}

  /** Bytes; empty if the planner does not know. Spark 4 moved the method into a subclass. */
  public static OptionalLong bytes(Dataset<?> table) {
    try {
      Object execution = table.getClass().getMethod("queryExecution").invoke(table);
      var size = ((QueryExecution) execution).optimizedPlan().stats().sizeInBytes();
      boolean known = size.isValidLong() && size.toLong() < UNKNOWN;
      return known ? OptionalLong.of(size.toLong()) : OptionalLong.empty();
    } catch (ReflectiveOperationException e) {
      return OptionalLong.empty();
    }
  }
}
