// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.internal;

import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.util.QuotingUtils;
import org.apache.spark.sql.functions;

/** Columns by their whole names, in which Spark's own look-up takes a dot for a field's. */
public final class NamedColumn {
  private NamedColumn() {}

  /** The column of exactly this name. */
  public static Column of(String name) {
    return functions.col(QuotingUtils.quoteIdentifier(name));
  }
}
