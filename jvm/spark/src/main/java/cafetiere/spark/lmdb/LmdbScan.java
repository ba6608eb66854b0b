// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.lmdb;

import cafetiere.core.lmdb.Lmdb;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A read of some columns, cut into ranges of keys. On the driver. */
final class LmdbScan
    implements ScanBuilder, SupportsPushDownRequiredColumns, SupportsReportStatistics, Batch {
  private static final Logger LOG = LoggerFactory.getLogger(LmdbScan.class);
  private static final String MOST_BYTES = "spark.sql.files.maxPartitionBytes";
  /** A range smaller than this is not worth a task. */
  private static final long LEAST_BYTES = 4 << 20;
  /** At the end of a range a part of what was read ahead is read in vain: at most this one. */
  private static final long AHEAD_PART = 64;
  private static final long LEAST_AHEAD = 64 << 10;
  private static final long MOST_AHEAD = 4 << 20;
  private static final int MOST_HOSTS = 3;

  private final LmdbTable table;
  private final SparkSession spark = SparkSession.active();
  private final Configuration conf = spark.sparkContext().hadoopConfiguration();
  private final List<FileStatus> files;
  private StructType columns;

  LmdbScan(LmdbTable table) {
    this.table = table;
    this.columns = LmdbColumn.schema(table.raw());
    this.files = LmdbFiles.at(table.path(), conf);
  }

  @Override
  public void pruneColumns(StructType required) {
    columns = required;
  }

  @Override
  public Scan build() {
    return this;
  }

  @Override
  public StructType readSchema() {
    return columns;
  }

  @Override
  public String description() {
    return table.name();
  }

  @Override
  public Statistics estimateStatistics() {
    long bytes = bytes();
    return new Statistics() {
      @Override
      public OptionalLong sizeInBytes() {
        return OptionalLong.of(bytes);
      }

      @Override
      public OptionalLong numRows() {
        return OptionalLong.empty();
      }
    };
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  @Override
  public InputPartition[] planInputPartitions() {
    long bytes = Math.max(1, bytes());
    int wanted = table.partitions() > 0 ? table.partitions() : bySize(bytes);
    List<LmdbRange> ranges = new ArrayList<>();
    for (FileStatus file : files) {
      double share = (double) file.getLen() / bytes;
      addRanges(file, (int) Math.max(1, Math.round(wanted * share)), ranges);
    }
    return ranges.toArray(new InputPartition[0]);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new LmdbReader.Factory(
        columns, table.isByPixel(), new SerializableConfiguration(conf));
  }

  private long bytes() {
    return files.stream().mapToLong(FileStatus::getLen).sum();
  }

  /** As for Spark's own files: a task for each core, of some megabytes each. */
  private int bySize(long bytes) {
    long most = JavaUtils.byteStringAsBytes(spark.conf().get(MOST_BYTES));
    long worthwhile = parts(bytes, LEAST_BYTES);
    long tasks = Math.min(worthwhile, spark.sparkContext().defaultParallelism());
    return (int) Math.max(tasks, parts(bytes, most));
  }

  private static long parts(long bytes, long most) {
    return (bytes + most - 1) / most;
  }

  private void addRanges(FileStatus file, int wanted, List<LmdbRange> ranges) {
    String path = file.getPath().toString();
    List<byte[]> cuts = cuts(path, file.getLen(), wanted);
    int count = cuts.size() + 1;
    long share = file.getLen() / count;
    int ahead = (int) Math.min(MOST_AHEAD, Math.max(LEAST_AHEAD, share / AHEAD_PART));
    BlockLocation[] blocks = blocks(file);
    for (int i = 0; i < count; i++) {
      byte[] from = i == 0 ? null : cuts.get(i - 1);
      byte[] to = i == cuts.size() ? null : cuts.get(i);
      List<String> hosts = hosts(blocks, i * share, (i + 1) * share);
      ranges.add(new LmdbRange(path, file.getLen(), ahead, from, to, hosts));
    }
  }

  private List<byte[]> cuts(String path, long size, int wanted) {
    try (HadoopBytes bytes = new HadoopBytes(path, size, 0, conf); Lmdb lmdb = bytes.open()) {
      if (wanted == 1) return List.of();
      if (lmdb.hasRanges()) return lmdb.split(wanted);
      LOG.warn("LMDB \"{}\" is read by one task: its keys lie in an order of their own"
          + " (MDB_REVERSEKEY or MDB_INTEGERKEY), so that it has no ranges of keys", path);
      return List.of();
    }
  }

  private BlockLocation[] blocks(FileStatus file) {
    try {
      return file.getPath().getFileSystem(conf).getFileBlockLocations(file, 0, file.getLen());
    } catch (IOException e) {
      throw new UncheckedIOException(
          "cannot find the blocks of " + file.getPath() + ": " + e.getMessage(), e);
    }
  }

  /** The hosts with most of these bytes: records in the order of their keys lie so in the file. */
  private static List<String> hosts(BlockLocation[] blocks, long from, long to) {
    Map<String, Long> bytes = new HashMap<>();
    for (BlockLocation block : blocks) {
      long end = block.getOffset() + block.getLength();
      long shared = Math.min(to, end) - Math.max(from, block.getOffset());
      if (shared <= 0) continue;
      try {
        for (String host : block.getHosts()) bytes.merge(host, shared, Long::sum);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
    bytes.remove("localhost"); // of a file system that is the same everywhere
    return bytes.entrySet().stream().sorted(Map.Entry.<String, Long>comparingByValue().reversed()
        .thenComparing(Map.Entry.comparingByKey())).limit(MOST_HOSTS).map(Map.Entry::getKey)
        .toList();
  }
}
