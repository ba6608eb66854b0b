// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.netfiles;

import cafetiere.spark.PreflightException;
import cafetiere.spark.util.HadoopFiles;
import com.esotericsoftware.kryo.DefaultSerializer;
import com.esotericsoftware.kryo.serializers.JavaSerializer;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;

/** Caffe's lists of image files: a line has a path, a blank and a label. */
final class ImageList {
  private static final StructType SCHEMA = new StructType()
      .add(FileTable.ID, DataTypes.LongType, false)
      .add(FileTable.LABEL, DataTypes.IntegerType, false)
      .add(FileTable.DATA, DataTypes.BinaryType, false);
  /** Paths may have blanks. */
  private static final Pattern LINE = Pattern.compile("\\s*(\\S.*?)\\s+(-?\\d{1,9})\\s*");

  @DefaultSerializer(JavaSerializer.class) // Kryo cannot make a record
  private record Entry(long line, String path, int label) implements Serializable {}

  private ImageList() {}

  /** A row for each line, numbered from 1: the file's bytes, which tasks read, and the label. */
  static Dataset<Row> table(SparkSession spark, String source, String root) {
    JavaSparkContext sc = JavaSparkContext.fromSparkContext(spark.sparkContext());
    List<Entry> entries = entries(HadoopFiles.readText(source, sc.hadoopConfiguration()), source, root);
    SerializableConfiguration conf = new SerializableConfiguration(sc.hadoopConfiguration());
    JavaRDD<Row> rows = sc.parallelize(entries, Math.min(entries.size(), sc.defaultParallelism()))
        .map(e -> RowFactory.create(e.line, e.label, HadoopFiles.read(e.path, conf.value())));
    return spark.createDataFrame(rows, SCHEMA);
  }

  private static List<Entry> entries(String list, String source, String root) {
    List<Entry> entries = new ArrayList<>();
    String[] lines = list.split("\n");
    for (int i = 0; i < lines.length; i++) {
      if (lines[i].isBlank()) continue;
      Matcher line = LINE.matcher(lines[i]);
      if (!line.matches()) {
        throw new PreflightException(List.of(source + ":" + (i + 1)
            + ": a line has the path of an image, a blank and its label, a whole number"));
      }
      entries.add(new Entry(i + 1, root + line.group(1), Integer.parseInt(line.group(2))));
    }
    if (!entries.isEmpty()) return entries;
    throw new PreflightException(List.of(source + " lists no images"));
  }
}
