// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sequence;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.lit;

import cafetiere.core.CafetiereException;
import cafetiere.spark.files.SourceOptions;
import cafetiere.spark.output.FolderOutput;
import cafetiere.spark.util.HadoopFiles;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.mapred.SequenceFileOutputFormat;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import scala.Tuple2;
import scala.Tuple6;

/**
 * Writes a table as CaffeOnSpark's tools do: the keys of rows that tell their size are Tuple6, those
 * of others, which hold image files, are Tuple2.
 */
final class SequenceOutput {
  private static final List<String> NEEDED = List.of("id", "label", "data");
  private static final int CHANNELS = 2;
  private static final int ENCODED = 5;
  private static final int DATA = 6;

  private SequenceOutput() {}

  /** Writes the rows to the path that the options name, a file for each partition. */
  static void write(Dataset<Row> data, Map<String, String> given, SaveMode mode) {
    String path = new SourceOptions("sequence", given).path();
    Configuration conf = data.sparkSession().sparkContext().hadoopConfiguration();
    Dataset<Row> rows = data.select(columns(data));
    FolderOutput.write(HadoopFiles.system(path, conf), path, mode, staging -> {
      rows.toJavaRDD().mapToPair(SequenceOutput::record).saveAsHadoopFile(staging.toString(),
          BytesWritable.class, BytesWritable.class, SequenceFileOutputFormat.class);
      return staging;
    });
  }

  /** Those that SequenceImages reads, in its order; null where the table has none. */
  private static Column[] columns(Dataset<Row> data) {
    List<String> there = Arrays.asList(data.columns());
    if (!there.containsAll(NEEDED)) {
      throw invalid("a SequenceFile is made of the columns " + String.join(", ", NEEDED) + ", with"
          + " channels, height, width and encoded if they are there; the table has "
          + String.join(", ", there) + ": select them by these names");
    }
    return Arrays.stream(SequenceImages.SCHEMA.fields()).map(field -> {
      Column column = there.contains(field.name()) ? col(field.name()) : lit(null);
      return column.cast(field.dataType()).as(field.name());
    }).toArray(Column[]::new);
  }

  private static Tuple2<BytesWritable, BytesWritable> record(Row row) throws IOException {
    String id = row.getString(0);
    if (id == null || row.isNullAt(1) || row.isNullAt(DATA)) {
      throw invalid("the row with the id " + id + " has no id, label or data: fill it, or drop it");
    }
    boolean isSized = !row.isNullAt(CHANNELS) && !row.isNullAt(3) && !row.isNullAt(4)
        && row.getInt(3) > 0 && row.getInt(4) > 0;
    if (!isSized && !row.isNullAt(ENCODED) && !row.getBoolean(ENCODED)) {
      throw invalid("the row with the id " + id + " is no image file, and does not tell its"
          + " channels, height and width");
    }
    Object key = !isSized ? new Tuple2<>(id, row.getString(1))
        : new Tuple6<>(id, row.getString(1), row.get(CHANNELS), row.get(3), row.get(4),
            !row.isNullAt(ENCODED) && row.getBoolean(ENCODED));
    return new Tuple2<>(
        new BytesWritable(serialized(key)), new BytesWritable(row.<byte[]>getAs(DATA)));
  }

  private static byte[] serialized(Object key) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(key);
    }
    return bytes.toByteArray();
  }

  private static CafetiereException invalid(String text) {
    return new CafetiereException(CafetiereException.Code.INVALID_ARGUMENT, text);
  }
}
