// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.files;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;

/**
 * CIFAR's files: the label, with 100 classes the coarse one and then the fine one, and three planes.
 *
 * @param files the records of each
 * @param labels bytes before an image's planes
 * @param partitions as many ranges; 0 for as many as the size asks for
 */
record CifarRows(List<RecordRange> files, int labels, int partitions) implements PathSource.Rows {
  private static final int SIDE = 32;
  private static final int CHANNELS = 3;
  private static final int PLANES = CHANNELS * SIDE * SIDE;

  static CifarRows open(SQLContext context, Map<String, String> given) {
    SourceOptions options = new SourceOptions("cifar", given, "classes", "partitions");
    int labels = options.word("classes", "10", "100").equals("10") ? 1 : 2;
    Configuration conf = context.sparkContext().hadoopConfiguration();
    List<RecordRange> files = new ArrayList<>();
    for (FileStatus file : SourceFiles.find(options.path(), conf, ".bin")) {
      int size = labels + PLANES;
      if (SourceFiles.isCompressed(file.getPath(), conf) || file.getLen() % size != 0) {
        throw SourceFiles.fault(file.getPath(), "has " + file.getLen() + " bytes, and records of "
            + (labels == 1 ? "10" : "100") + " classes have " + size + ": it is cut short, or the"
            + " option classes is to be another");
      }
      files.add(new RecordRange(file.getPath().toString(), 0, size, file.getLen() / size));
    }
    return new CifarRows(List.copyOf(files), labels, options.count("partitions"));
  }

  /** The columns of CaffeOnSpark's ImageDataFrame, and the coarse label where there is one. */
  @Override
  public StructType schema() {
    return labels == 1 ? IdxRows.SCHEMA
        : IdxRows.SCHEMA.add("coarse_label", DataTypes.IntegerType);
  }

  @Override
  public RDD<Row> rows(JavaSparkContext sc, SerializableConfiguration conf) {
    long bytes = files.stream().mapToLong(file -> file.count() * file.size()).sum();
    int wanted = RecordRange.ranges(sc, partitions, bytes);
    List<RecordRange> ranges = new ArrayList<>();
    for (RecordRange file : files) {
      double share = (double) file.count() * file.size() / Math.max(1, bytes);
      ranges.addAll(file.split((int) Math.round(wanted * share), conf.value()));
    }
    return sc.parallelize(ranges, ranges.size()).flatMap(range -> read(range, conf.value())).rdd();
  }

  private Iterator<Row> read(RecordRange range, Configuration conf) {
    String file = range.file().substring(range.file().lastIndexOf('/') + 1);
    Iterator<byte[]> records = range.read(conf);
    return new Iterator<>() {
      private long number = range.first();

      @Override
      public boolean hasNext() {
        return records.hasNext();
      }

      @Override
      public Row next() {
        return row(file + ":" + number++, records.next());
      }
    };
  }

  private Row row(String id, byte[] record) {
    byte[] planes = Arrays.copyOfRange(record, labels, record.length);
    List<Object> values = new ArrayList<>(List.of(
        id, record[labels - 1] & 0xff, CHANNELS, SIDE, SIDE, false, planes));
    if (labels > 1) values.add(record[0] & 0xff);
    return RowFactory.create(values.toArray());
  }
}
