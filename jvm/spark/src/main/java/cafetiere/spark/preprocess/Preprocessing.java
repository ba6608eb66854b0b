// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.preprocess;

import cafetiere.spark.PreflightException;
import cafetiere.spark.internal.SparkInternals;
import java.util.Iterator;
import java.util.List;
import java.util.function.UnaryOperator;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/** Finds the class that the param preprocessor names, and applies it. "" is none. */
public final class Preprocessing {
  private Preprocessing() {}

  /** The table to train on. */
  public static Dataset<Row> toTrain(String name, Dataset<Row> table) {
    return name.isEmpty() ? table
        : map(name, table, rows -> new Mapped(rows, open(name)::applyToTrain));
  }

  /** The table to test on. */
  public static Dataset<Row> toTest(String name, Dataset<Row> table) {
    return name.isEmpty() || table == null ? table
        : map(name, table, rows -> new Mapped(rows, open(name)::apply));
  }

  /** The columns that a table of these comes to have. */
  public static StructType schema(String name, StructType given) {
    return name.isEmpty() ? given : open(name).schema(given);
  }

  /** What a task does to its rows to predict: from the columns {@code given} to {@code made}. */
  public static UnaryOperator<UnsafeRow> ofBinary(String name, StructType given, StructType made) {
    return name.isEmpty() ? UnaryOperator.identity()
        : SparkInternals.binary(given, made, open(name)::apply);
  }

  private static Dataset<Row> map(
      String name, Dataset<Row> table, MapPartitionsFunction<Row, Row> function) {
    return table.mapPartitions(function, Encoders.row(schema(name, table.schema())));
  }

  private static Preprocessor open(String name) {
    try {
      ClassLoader loader = Thread.currentThread().getContextClassLoader();
      return (Preprocessor) Class.forName(name, true, loader).getConstructor().newInstance();
    } catch (ReflectiveOperationException | ClassCastException e) {
      throw new PreflightException(List.of("preprocessor names " + name + ", which is no class on the"
          + " class path that implements cafetiere.spark.preprocess.Preprocessor and has a public constructor"
          + " without arguments: " + e));
    }
  }

  private record Mapped(Iterator<Row> rows, UnaryOperator<Row> function) implements Iterator<Row> {
    @Override
    public boolean hasNext() {
      return rows.hasNext();
    }

    @Override
    public Row next() {
      return function.apply(rows.next());
    }
  }
}
