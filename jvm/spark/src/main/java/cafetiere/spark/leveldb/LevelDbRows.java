// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.leveldb;

import static java.nio.charset.StandardCharsets.UTF_8;

import cafetiere.core.CafetiereException;
import cafetiere.core.leveldb.LevelDb;
import cafetiere.spark.files.PathSource;
import cafetiere.spark.files.SourceFiles;
import cafetiere.spark.files.SourceOptions;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.lmdb.Datum;
import cafetiere.spark.lmdb.LmdbColumn;
import cafetiere.spark.lmdb.LmdbOutput;
import cafetiere.spark.util.TaskFolder;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;

/**
 * The LevelDBs at a path. LevelDB writes to what it reads and lets one process in: a task copies a
 * database to a local disk and reads it there, whole.
 *
 * @param folders of the databases
 * @param isByPixel whether raw images are to lie pixel by pixel, not channel by channel
 * @param raw whether the columns are key and value, whatever the values are
 */
record LevelDbRows(List<String> folders, boolean isByPixel, boolean raw)
    implements PathSource.Rows {
  private static final String SOURCE = "leveldb";
  private static final String LAYOUT = "layout";
  private static final String BY_PLANE = "chw";
  private static final String BY_PIXEL = "hwc";
  /** Every LevelDB has it: it names the newest manifest. */
  private static final String CURRENT = "CURRENT";
  private static final String LOCK = "LOCK";

  static LevelDbRows open(SQLContext context, Map<String, String> given) {
    SourceOptions options = new SourceOptions(SOURCE, given, LAYOUT, "raw");
    Configuration conf = context.sparkContext().hadoopConfiguration();
    return new LevelDbRows(find(options.path(), conf), isByPixel(options),
        options.word("raw", "false", "true").equals("true"));
  }

  static void write(Dataset<Row> data, Map<String, String> given, SaveMode mode) {
    SourceOptions options = new SourceOptions(SOURCE, given, LAYOUT);
    LmdbOutput.write(data, LmdbOutput.Kind.LEVELDB, options.path(), isByPixel(options), mode);
  }

  private static boolean isByPixel(SourceOptions options) {
    return options.word(LAYOUT, BY_PLANE, BY_PIXEL).equals(BY_PIXEL);
  }

  /** The folder itself or, if it is none, those inside that are. */
  private static List<String> find(String path, Configuration conf) {
    try {
      Path folder = new Path(path);
      FileSystem fs = folder.getFileSystem(conf);
      if (fs.exists(new Path(folder, CURRENT))) return List.of(folder.toString());
      List<String> found = new ArrayList<>();
      FileStatus[] inside = fs.exists(folder) ? fs.listStatus(folder) : new FileStatus[0];
      Arrays.sort(inside);
      for (FileStatus entry : inside) {
        boolean isOne = entry.isDirectory() && fs.exists(new Path(entry.getPath(), CURRENT));
        if (isOne) found.add(entry.getPath().toString());
      }
      if (!found.isEmpty()) return found;
    } catch (IOException e) {
      throw SourceFiles.unread(path, e);
    }
    throw new CafetiereException(CafetiereException.Code.NOT_FOUND, "there is no LevelDB at " + path
        + ": neither it nor a folder in it has a file " + CURRENT);
  }

  @Override
  public StructType schema() {
    return LmdbColumn.schema(raw);
  }

  @Override
  public RDD<Row> rows(JavaSparkContext sc, SerializableConfiguration conf) {
    return sc.parallelize(folders, folders.size())
        .flatMap(folder -> new Records(folder, conf.value())).rdd();
  }

  private Row row(String folder, ByteBuffer key, ByteBuffer value) {
    if (raw) return RowFactory.create(LmdbColumn.bytes(key), LmdbColumn.bytes(value));
    String id = UTF_8.decode(key.duplicate()).toString();
    Datum datum = Datum.parse(value);
    String fault = datum == null
        ? "is no Datum: read it with the option raw, which gives key and value" : datum.fault();
    if (!fault.isEmpty()) {
      throw new CafetiereException(CafetiereException.Code.INVALID_ARGUMENT,
          "LevelDB \"" + folder + "\": the record with the key " + id + " " + fault);
    }
    return RowFactory.create(id, datum.label(), datum.channels(), datum.height(), datum.width(),
        datum.encoded(), datum.pixels(isByPixel), datum.floats().length == 0 ? null : datum.floats());
  }

  /** The rows of a database, in a task; another thread may still ask for them when it ends. */
  private final class Records implements Iterator<Row>, AutoCloseable {
    private final String folder;
    private final TaskFolder local;
    private final LevelDb leveldb;
    private boolean hasNext;
    private boolean closed;

    Records(String folder, Configuration conf) {
      this.folder = folder;
      try {
        local = new TaskFolder(SparkInternals.localFolder());
        SourceFiles.closeAfterTask(local);
        copy(new Path(folder), conf);
      } catch (IOException e) {
        throw SourceFiles.unread(folder, e);
      }
      leveldb = new LevelDb(local.path());
      SourceFiles.closeAfterTask(this); // before the folder: the last is the first
      hasNext = advance();
    }

    private void copy(Path from, Configuration conf) throws IOException {
      FileSystem fs = from.getFileSystem(conf);
      for (FileStatus file : fs.listStatus(from)) {
        String name = file.getPath().getName();
        if (!file.isFile() || name.equals(LOCK)) continue;
        Path to = new Path(local.path().resolve(name).toUri());
        fs.copyToLocalFile(false, file.getPath(), to, true);
      }
    }

    @Override
    public boolean hasNext() {
      return hasNext;
    }

    @Override
    public synchronized Row next() {
      requireOpen();
      if (!hasNext) throw new NoSuchElementException();
      Row row = row(folder, leveldb.key(), leveldb.value());
      hasNext = advance();
      return row;
    }

    private synchronized boolean advance() {
      requireOpen();
      return leveldb.next();
    }

    private void requireOpen() {
      if (closed) {
        throw new IllegalStateException("the task has ended: no more rows of " + folder + " are read");
      }
    }

    @Override
    public synchronized void close() {
      closed = true;
      leveldb.close();
    }
  }
}
