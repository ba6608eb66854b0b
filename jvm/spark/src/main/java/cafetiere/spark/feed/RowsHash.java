// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.feed;

import java.math.BigDecimal;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;

/** Tells tables apart by the rows that are fed, in whatever order and partitions they come. */
public final class RowsHash {
  private RowsHash() {}

  /**
   * Digits that differ where the fed columns of two tables do. Reads the table once. The sum of the
   * rows' hashes is a decimal: it cannot overflow, and equal rows do not cancel each other out.
   */
  public static String of(FeedSchema schema, Dataset<Row> table) {
    Dataset<Row> fed = schema.select(table);
    Row sums = fed
        .select(functions.xxhash64(fed.col("*")).cast(DataTypes.createDecimalType(20, 0)).as("h"))
        .agg(functions.count("h"), functions.sum("h")).first();
    BigDecimal sum = sums.isNullAt(1) ? BigDecimal.ZERO : sums.getDecimal(1);
    return sums.getLong(0) + " " + sum.toPlainString();
  }
}
