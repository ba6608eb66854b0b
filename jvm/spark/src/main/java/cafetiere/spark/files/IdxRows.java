// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.files;

import cafetiere.spark.util.HadoopFiles;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;

/**
 * An IDX file of bytes and the file of its labels.
 *
 * @param images the records
 * @param sizes of a record: channels, height and width
 * @param labels the path of the labels; "" for none
 * @param partitions as many ranges; 0 for as many as the size asks for
 */
record IdxRows(RecordRange images, List<Integer> sizes, String labels, int partitions)
    implements PathSource.Rows {
  /** The columns of CaffeOnSpark's ImageDataFrame. */
  static final StructType SCHEMA = new StructType()
      .add("id", DataTypes.StringType).add("label", DataTypes.IntegerType)
      .add("channels", DataTypes.IntegerType).add("height", DataTypes.IntegerType)
      .add("width", DataTypes.IntegerType).add("encoded", DataTypes.BooleanType)
      .add("data", DataTypes.BinaryType);
  /** Two zeros, the type of a byte without sign, and the number of axes. */
  private static final int MAGIC = 0x800;
  private static final int MOST_AXES = 4;

  /** What the header of a file says. */
  private record Header(int bytes, long records, List<Integer> sizes) {
    static Header read(Path path, Configuration conf) {
      try (DataInputStream in = new DataInputStream(HadoopFiles.open(path, conf))) {
        int axes = in.readInt() - MAGIC;
        if (axes < 1 || axes > MOST_AXES) {
          throw SourceFiles.fault(path, "is no IDX file of bytes with 1 to 4 axes");
        }
        long records = Integer.toUnsignedLong(in.readInt());
        int[] sizes = new int[axes - 1];
        for (int i = 0; i < sizes.length; i++) sizes[i] = in.readInt();
        List<Integer> all = Arrays.stream(sizes).boxed().collect(Collectors.toList());
        return new Header(Integer.BYTES * (1 + axes), records, all);
      } catch (IOException e) {
        throw SourceFiles.unread(path, e);
      }
    }
  }

  static IdxRows open(SQLContext context, Map<String, String> given) {
    SourceOptions options = new SourceOptions("idx", given, "labels", "partitions");
    Configuration conf = context.sparkContext().hadoopConfiguration();
    Path path = new Path(options.path());
    Header header = Header.read(path, conf);
    if (header.sizes().isEmpty()) {
      throw SourceFiles.fault(path, "holds labels: load the file of the images, and name this one"
          + " with the option labels");
    }
    int size = product(path, header.sizes());
    String labels = options.get("labels", besides(path, conf));
    if (!labels.isEmpty()) {
      Header other = Header.read(new Path(labels), conf);
      if (!other.sizes().isEmpty() || other.records() != header.records()) {
        throw SourceFiles.fault(labels, "has " + other.records() + " records of "
            + (other.sizes().isEmpty() ? "1 byte" : "shape " + other.sizes()) + ", and " + path
            + " needs a label for each of " + header.records());
      }
    }
    RecordRange images =
        new RecordRange(path.toString(), header.bytes(), size, header.records());
    return new IdxRows(images, ofThree(header.sizes()), labels, options.count("partitions"));
  }

  /** The labels that MNIST has beside its images; "" if they are not there. */
  private static String besides(Path images, Configuration conf) {
    String name = images.getName().replaceFirst("images([.-])idx3", "labels$1idx1");
    Path labels = new Path(images.getParent(), name);
    try {
      boolean isThere = !name.equals(images.getName()) && labels.getFileSystem(conf).exists(labels);
      return isThere ? labels.toString() : "";
    } catch (IOException e) {
      throw SourceFiles.unread(labels, e);
    }
  }

  private static int product(Path path, List<Integer> sizes) {
    long product = 1;
    for (int size : sizes) {
      product *= size;
      if (size < 1 || product > Integer.MAX_VALUE) {
        throw SourceFiles.fault(path, "says that its records have the shape " + sizes);
      }
    }
    return (int) product;
  }

  private static List<Integer> ofThree(List<Integer> sizes) {
    return switch (sizes.size()) {
      case 1 -> List.of(sizes.get(0), 1, 1);
      case 2 -> List.of(1, sizes.get(0), sizes.get(1));
      default -> sizes;
    };
  }

  @Override
  public StructType schema() {
    return SCHEMA;
  }

  @Override
  public RDD<Row> rows(JavaSparkContext sc, SerializableConfiguration conf) {
    int wanted = RecordRange.ranges(sc, partitions, images.count() * images.size());
    List<RecordRange> ranges = images.split(wanted, conf.value());
    return sc.parallelize(ranges, ranges.size()).flatMap(range -> read(range, conf.value())).rdd();
  }

  private Iterator<Row> read(RecordRange range, Configuration conf) {
    Iterator<byte[]> data = range.read(conf);
    Iterator<byte[]> label = labels.isEmpty() ? null
        : range.alsoIn(labels, 2 * Integer.BYTES, 1).read(conf);
    return new Iterator<>() {
      private long number = range.first();

      @Override
      public boolean hasNext() {
        return data.hasNext();
      }

      @Override
      public Row next() {
        return RowFactory.create(Long.toString(number++),
            label == null ? null : label.next()[0] & 0xff, sizes.get(0), sizes.get(1), sizes.get(2),
            false, data.next());
      }
    };
  }
}
