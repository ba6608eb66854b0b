// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.feed;

import cafetiere.spark.PreflightException;
import cafetiere.spark.internal.NamedColumn;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** The rows that validationIndicatorCol marks: they are tested on, and not trained on. */
public final class HeldOutRows {
  private HeldOutRows() {}

  /** Whether a row is marked, where a null marks nothing; refuses columns that are not boolean. */
  public static Column of(StructType table, String name) {
    List<String> names = Arrays.asList(table.fieldNames());
    if (!names.contains(name)) {
      throw new PreflightException(
          List.of("validationIndicatorCol: " + FeedSchema.missing(name, names)));
    }
    DataType type = table.apply(name).dataType();
    if (!type.equals(DataTypes.BooleanType)) {
      throw new PreflightException(List.of("validationIndicatorCol '" + name + "' is of type "
          + type.catalogString() + ": it must be boolean; cast it"));
    }
    return functions.coalesce(NamedColumn.of(name), functions.lit(false));
  }

  /**
   * Why a fit has failed, which may be that the column marks all rows or none: the engine, which does not
   * know of the column, speaks of a table without rows then.
   *
   * @param name of the column; with "" an error stays what it is
   */
  public static RuntimeException explained(
      RuntimeException error, String name, Dataset<Row> train, Dataset<Row> test) {
    String told = String.valueOf(error.getMessage());
    boolean isOfTest = told.contains("rows to test on");
    if (name.isEmpty() || !isOfTest && !told.contains("no rows") && !told.contains("no value")) return error;
    if (!(isOfTest ? test : train).isEmpty()) return error;
    return new PreflightException(List.of("validationIndicatorCol '" + name + "' is true in "
        + (isOfTest ? "no row: there is none to test on; mark some rows, or leave the param empty"
            : "all rows, or there are none: none is left to train on; mark fewer rows")));
  }
}
