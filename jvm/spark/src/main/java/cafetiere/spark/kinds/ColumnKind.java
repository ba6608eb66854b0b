// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.kinds;

import cafetiere.spark.feed.ColumnType;
import java.util.Arrays;
import java.util.Optional;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/**
 * A kind of column that decides which types a column may have, named as TableDataParameter names it; the
 * strictest first. Categories are not among them: equal values of all types have equal texts.
 */
enum ColumnKind {
  DATE("a date", "cast it to date"),
  TIMESTAMP("a timestamp", "cast it to timestamp"),
  IMAGE("an image", "give image files (binary), or Spark's images"),
  NUMBER("a number", "cast it to a number, as it was in training");

  private final String words;
  private final String advice;

  ColumnKind(String words, String advice) {
    this.words = words;
    this.advice = advice;
  }

  /** The kind of that name, if types matter to it. */
  static Optional<ColumnKind> of(String name) {
    return Arrays.stream(values()).filter(kind -> kind.name().equals(name)).findFirst();
  }

  /** The kind of a column that a net reads as two. */
  static ColumnKind stricter(ColumnKind a, ColumnKind b) {
    return a.compareTo(b) <= 0 ? a : b;
  }

  /** What a message calls it. */
  String words() {
    return words;
  }

  /** How a column of another type becomes one. */
  String advice() {
    return advice;
  }

  /** Whether cells of a type are read as they were in training. */
  boolean takes(DataType type) {
    return switch (this) {
      case DATE -> type.equals(DataTypes.DateType);
      case TIMESTAMP -> isTimestamp(type);
      case IMAGE -> ColumnType.isImage(type);
      default -> !isTimestamp(type) && !type.equals(DataTypes.DateType) && !isText(type);
    };
  }

  private static boolean isTimestamp(DataType type) {
    return type.equals(DataTypes.TimestampType) || type.equals(DataTypes.TimestampNTZType);
  }

  private static boolean isText(DataType type) {
    DataType one = type instanceof ArrayType array ? array.elementType() : type;
    return one.equals(DataTypes.StringType);
  }
}
