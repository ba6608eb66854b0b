// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sequence;

import cafetiere.core.CafetiereException;
import cafetiere.spark.files.PathSource;
import cafetiere.spark.files.SourceOptions;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.io.BytesWritable;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;

/**
 * CaffeOnSpark's SequenceFiles: the key is a serialized Pair or Tuple2 of id and label, whose value is
 * an image file, or a Tuple6 of id, label, channels, height, width and whether it is one.
 */
public final class SequenceImages {
  static final StructType SCHEMA = new StructType()
      .add("id", DataTypes.StringType).add("label", DataTypes.StringType)
      .add("channels", DataTypes.IntegerType).add("height", DataTypes.IntegerType)
      .add("width", DataTypes.IntegerType).add("encoded", DataTypes.BooleanType)
      .add("data", DataTypes.BinaryType);
  private static final int PAIR = 2;

  private SequenceImages() {}

  /** What a path holds, for Spark's reader. */
  static PathSource.Rows open(Map<String, String> options) {
    String path = new SourceOptions("sequence", options).path();
    return new PathSource.Rows() {
      @Override
      public StructType schema() {
        return SCHEMA;
      }

      @Override
      public RDD<Row> rows(JavaSparkContext sc, SerializableConfiguration conf) {
        return SequenceImages.rows(sc, path, sc.defaultMinPartitions()).rdd();
      }
    };
  }

  /** The table of the images at a Hadoop path, with the columns of CaffeOnSpark's ImageDataFrame. */
  public static Dataset<Row> read(SparkSession spark, String path) {
    return read(spark, path, spark.sparkContext().defaultMinPartitions());
  }

  /** The same in so many partitions at least. */
  public static Dataset<Row> read(SparkSession spark, String path, int partitions) {
    JavaSparkContext sc = JavaSparkContext.fromSparkContext(spark.sparkContext());
    return spark.createDataFrame(rows(sc, path, partitions), SCHEMA);
  }

  private static JavaRDD<Row> rows(JavaSparkContext sc, String path, int partitions) {
    return sc.sequenceFile(path, BytesWritable.class, BytesWritable.class, partitions)
        .map(record -> row(record._1(), record._2())).filter(row -> !row.isNullAt(0));
  }

  /** Without an id where CaffeOnSpark's tool could not read the image's file. */
  private static Row row(BytesWritable key, BytesWritable value) {
    Object[] row = Arrays.copyOf(elements(key), SCHEMA.length());
    if (row[SCHEMA.fieldIndex("encoded")] == null) row[SCHEMA.fieldIndex("encoded")] = true;
    row[SCHEMA.fieldIndex("data")] = value.copyBytes();
    return RowFactory.create(row);
  }

  private static Object[] elements(BytesWritable key) {
    try {
      Object[] elements = SerializedKey.elements(key.getBytes(), key.getLength());
      List<Class<?>> types = elements.length == PAIR ? List.of(String.class, String.class)
          : List.of(String.class, String.class, Integer.class, Integer.class, Integer.class,
              Boolean.class);
      boolean fits = elements.length == types.size();
      for (int i = 0; fits && i < elements.length; i++) {
        fits = elements[i] == null || types.get(i).isInstance(elements[i]);
      }
      if (fits) return elements;
      throw new IOException("it holds " + Arrays.toString(elements));
    } catch (IOException e) {
      throw new CafetiereException(CafetiereException.Code.INVALID_ARGUMENT, "a key of the"
          + " SequenceFile is none of CaffeOnSpark's, (id, label) or (id, label, channels, height,"
          + " width, encoded): " + e.getMessage(), e);
    }
  }
}
