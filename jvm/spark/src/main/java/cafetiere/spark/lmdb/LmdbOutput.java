// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.lmdb;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.concat;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.not;
import static org.apache.spark.sql.functions.raise_error;
import static org.apache.spark.sql.functions.when;

import cafetiere.core.CafetiereException;
import cafetiere.core.lmdb.LmdbWriter;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.output.FolderOutput;
import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.TaskFolder;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;

/**
 * Writes a table as databases, one a partition. Each task makes its own on the local disk and copies
 * it into the folder that {@link FolderOutput} has beside the path, under a name of this attempt; when all
 * have, the driver makes one folder of those of the attempts that Spark counts.
 */
public final class LmdbOutput {
  /** What a partition becomes. */
  public enum Kind {
    LMDB(LmdbWriter::ofLmdb), LEVELDB(LmdbWriter::ofLevelDb);

    private final Function<java.nio.file.Path, LmdbWriter> create;

    Kind(Function<java.nio.file.Path, LmdbWriter> create) {
      this.create = create;
    }
  }

  private static final List<LmdbColumn> RECORDS = List.of(LmdbColumn.KEY, LmdbColumn.VALUE);

  private LmdbOutput() {}

  /** Writes the rows to a path; {@code isByPixel}: raw images lie so in the table. */
  public static void write(
      Dataset<Row> data, Kind kind, String path, boolean isByPixel, SaveMode mode) {
    Configuration conf = data.sparkSession().sparkContext().hadoopConfiguration();
    FileSystem fs = fileSystem(path, conf);
    FolderOutput.write(fs, path, mode, staging -> {
      fs.mkdirs(staging);
      return whole(fs, staging, attempts(data, kind, isByPixel, staging, conf));
    });
  }

  /** Without checksums beside local files: liblmdb may write to a database later, which has none. */
  private static FileSystem fileSystem(String path, Configuration conf) {
    FileSystem fs = HadoopFiles.system(path, conf);
    return fs instanceof LocalFileSystem local ? local.getRawFileSystem() : fs;
  }

  /** Runs the tasks; the names of the folders that they left, in the order of the partitions. */
  private static List<String> attempts(
      Dataset<Row> data, Kind kind, boolean isByPixel, Path staging, Configuration conf) {
    List<String> columns = Arrays.asList(data.columns());
    boolean isOfRecords = columns.containsAll(RECORDS.stream().map(LmdbColumn::title).toList());
    LmdbColumn key = isOfRecords ? LmdbColumn.KEY : LmdbColumn.ID;
    Dataset<Row> rows = data.select(isOfRecords ? records() : images(data.schema()));
    if (columns.contains(key.title())) rows = rows.sortWithinPartitions(key.title());
    Task task = new Task(kind, staging.toString(), isOfRecords, columns.contains(key.title()),
        isByPixel, new SerializableConfiguration(conf));
    List<String> attempts = rows.javaRDD().mapPartitionsWithIndex(task::write, false).collect();
    if (!attempts.isEmpty()) return attempts;
    throw new CafetiereException(CafetiereException.Code.INVALID_ARGUMENT,
        "the table has no partitions, and so no rows to write");
  }

  private static Column[] records() {
    return RECORDS.stream().map(c -> col(c.title()).cast("binary")).toArray(Column[]::new);
  }

  /** The columns of images, in the order of LmdbColumn; null where the table has none. */
  private static Column[] images(StructType schema) {
    List<String> there = Arrays.asList(schema.fieldNames());
    if (!there.contains("data") && !there.contains("float_data")) {
      throw new CafetiereException(CafetiereException.Code.INVALID_ARGUMENT, "a database is made of a"
          + " column data (binary) or float_data (array of float), with id, label, channels,"
          + " height, width and encoded, or of key and value (binary); the table has "
          + String.join(", ", there) + ": select them by these names");
    }
    StructType wanted = LmdbColumn.schema(false);
    return Arrays.stream(wanted.fields()).map(field -> {
      if (!there.contains(field.name())) return lit(null).cast(field.dataType()).as(field.name());
      Column column = col(field.name());
      return (field.name().equals("label") ? whole(column) : column.cast(field.dataType()))
          .as(field.name());
    }).toArray(Column[]::new);
  }

  /** A label may be text or a number of any type, if it is a whole one. */
  private static Column whole(Column label) {
    Column number = label.cast("double");
    Column whole = number.cast("int");
    Column isOther = label.isNotNull().and(not(whole.cast("double").eqNullSafe(number)));
    Column text = concat(lit("a label of a database is a whole number, and one is "),
        label.cast("string"));
    return when(isOther.or(number.isNull().and(label.isNotNull())), raise_error(text))
        .otherwise(whole);
  }

  /** A folder of what Spark counts. */
  private static Path whole(FileSystem fs, Path staging, List<String> attempts) throws IOException {
    if (attempts.size() == 1) return new Path(staging, attempts.get(0));
    Path result = new Path(staging, "result");
    fs.mkdirs(result);
    for (int i = 0; i < attempts.size(); i++) {
      HadoopFiles.move(fs, new Path(staging, attempts.get(i)), new Path(result, LmdbFiles.part(i)));
    }
    return result;
  }

  /** The key of a row that has none: they sort as the rows lie. */
  static String place(int partition, long number) {
    return String.format(Locale.ROOT, "%05d-%010d", partition, number);
  }

  /** What the tasks know: a partition goes into a database of its own. */
  private record Task(Kind kind, String staging, boolean isOfRecords, boolean hasKeys,
      boolean isByPixel, SerializableConfiguration conf) implements java.io.Serializable {
    private static final long COMMIT_BYTES = 32 << 20;
    private static final int LONGEST_KEY = 511;

    /** Writes a partition and gives the name of its folder in {@code staging}. */
    Iterator<String> write(int partition, Iterator<Row> rows) throws IOException {
      try (TaskFolder local = new TaskFolder(SparkInternals.localFolder())) {
        java.nio.file.Path database = local.path().resolve("db");
        fill(database, partition, rows);
        long attempt = TaskContext.get().taskAttemptId();
        Path target = new Path(staging, LmdbFiles.part(partition) + "." + attempt);
        fileSystem(staging, conf.value())
            .copyFromLocalFile(false, true, new Path(database.toUri()), target);
        return List.of(target.getName()).iterator();
      }
    }

    private void fill(java.nio.file.Path database, int partition, Iterator<Row> rows) {
      try (LmdbWriter writer = kind.create.apply(database)) {
        byte[] last = null;
        long pending = 0;
        for (long number = 0; rows.hasNext(); number++) {
          Row row = rows.next();
          byte[] key = hasKeys ? key(row) : place(partition, number).getBytes(UTF_8);
          if (Arrays.equals(key, last)) throw invalid(key, "is there twice in one partition");
          byte[] value = isOfRecords ? row.getAs(1) : datum(row, key).encode();
          writer.put(key, value);
          last = key;
          pending += key.length + value.length;
          if (pending < COMMIT_BYTES) continue;
          writer.commit();
          pending = 0;
        }
        writer.commit();
      }
    }

    private byte[] key(Row row) {
      byte[] key = row.isNullAt(0) ? new byte[0]
          : isOfRecords ? row.<byte[]>getAs(0) : row.getString(0).getBytes(UTF_8);
      if (key.length > 0 && key.length <= LONGEST_KEY) return key;
      throw invalid(key, "has " + key.length + " bytes: 1 to " + LONGEST_KEY + " are possible");
    }

    private Datum datum(Row row, byte[] key) {
      boolean isSized = !row.isNullAt(2) && !row.isNullAt(3) && !row.isNullAt(4);
      boolean isEncoded = row.isNullAt(5) ? !isSized && !row.isNullAt(6) : row.getBoolean(5);
      int channels = isSized ? row.getInt(2) : 0;
      byte[] data = row.isNullAt(6) ? new byte[0] : row.getAs(6);
      float[] floats = floats(row);
      Datum datum = new Datum(channels, isSized ? row.getInt(3) : 0, isSized ? row.getInt(4) : 0,
          ByteBuffer.wrap(data), row.isNullAt(1) ? 0 : row.getInt(1), floats, isEncoded);
      if (!datum.fault().isEmpty()) throw invalid(key, datum.fault());
      if (!isByPixel || isEncoded || channels <= 1) return datum;
      byte[] planes = Datum.transposed(data, data.length / channels);
      return new Datum(channels, datum.height(), datum.width(), ByteBuffer.wrap(planes),
          datum.label(), floats, false);
    }

    private static float[] floats(Row row) {
      if (row.isNullAt(7)) return new float[0];
      List<Float> values = row.getList(7);
      float[] floats = new float[values.size()];
      for (int i = 0; i < floats.length; i++) floats[i] = values.get(i);
      return floats;
    }

    private static CafetiereException invalid(byte[] key, String fault) {
      return new CafetiereException(CafetiereException.Code.INVALID_ARGUMENT,
          "the row with the key \"" + new String(key, UTF_8) + "\" " + fault);
    }
  }
}
