// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.connect;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * What a model has beside its transform, as a table. It is asked for by transforming a table whose one
 * column is named "cafetiere:" and what is wanted.
 */
public final class ModelReport {
  private static final String PREFIX = "cafetiere:";
  /** Rows stay far below what one message may have. */
  private static final int PART_BYTES = 1 << 20;
  private static final StructType SCHEMA = new StructType()
      .add("part", DataTypes.IntegerType, false).add("value", DataTypes.BinaryType, false);

  private ModelReport() {}

  /** Whether a table asks for something. */
  public static boolean isAskedBy(StructType schema) {
    return schema.size() == 1 && schema.fieldNames()[0].startsWith(PREFIX);
  }

  /** What it asks for. */
  public static String asked(StructType schema) {
    return schema.fieldNames()[0].substring(PREFIX.length());
  }

  /** The schema of every answer. */
  public static StructType schema() {
    return SCHEMA;
  }

  /** The answer, in parts that have an order. */
  public static Dataset<Row> of(byte[] value, SparkSession spark) {
    List<Row> parts = new ArrayList<>();
    for (int from = 0; from < value.length; from += PART_BYTES) {
      int to = Math.min(value.length, from + PART_BYTES);
      parts.add(RowFactory.create(parts.size(), Arrays.copyOfRange(value, from, to)));
    }
    return spark.createDataFrame(parts, SCHEMA);
  }

  /** What is said where there is no such thing. */
  public static IllegalArgumentException unknown(String asked) {
    return new IllegalArgumentException("a model tells nothing of the name " + asked);
  }
}
