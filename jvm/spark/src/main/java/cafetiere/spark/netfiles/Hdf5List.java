// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.netfiles;

import cafetiere.core.hdf5.Hdf5;
import cafetiere.spark.PreflightException;
import cafetiere.spark.files.SourceFiles;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.util.HadoopFiles;
import cafetiere.spark.util.TaskFolder;
import com.esotericsoftware.kryo.DefaultSerializer;
import com.esotericsoftware.kryo.serializers.JavaSerializer;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;

/** Caffe's lists of HDF5 files, with white space between their paths. A task reads a file. */
final class Hdf5List {
  /** A file, by its place in the list. */
  @DefaultSerializer(JavaSerializer.class) // Kryo cannot make a record
  private record Entry(int place, String path) implements Serializable {}

  private Hdf5List() {}

  /**
   * The rows of all files: {@code id}, the file's place and that of the row in it, and a column for each
   * top, by its name. All files have rows as the first has.
   */
  static Dataset<Row> table(SparkSession spark, String source, List<String> tops) {
    JavaSparkContext sc = JavaSparkContext.fromSparkContext(spark.sparkContext());
    List<Entry> files = new ArrayList<>();
    for (String path : HadoopFiles.readText(source, sc.hadoopConfiguration()).split("\\s+")) {
      if (!path.isEmpty()) files.add(new Entry(files.size(), path));
    }
    if (files.isEmpty()) throw new PreflightException(List.of(source + " lists no files"));
    SerializableConfiguration conf = new SerializableConfiguration(sc.hadoopConfiguration());
    List<String> names = List.copyOf(tops);
    String first = sc.parallelize(files.subList(0, 1), 1)
        .map(file -> new Rows(file, names, "", conf.value()).form()).first();
    JavaRDD<Row> rows = sc.parallelize(files, files.size())
        .flatMap(file -> new Rows(file, names, first, conf.value()));
    return spark.createDataFrame(rows, schema(tops, first));
  }

  private static StructType schema(List<String> tops, String form) {
    StructType schema = new StructType().add(FileTable.ID, DataTypes.StringType, false);
    String[] shapes = form.split(";", -1);
    for (int i = 0; i < tops.size(); i++) {
      long[] shape = Arrays.stream(shapes[i].split(",")).filter(size -> !size.isEmpty())
          .mapToLong(Long::parseLong).toArray();
      schema = shape.length == 0 ? schema.add(tops.get(i), DataTypes.FloatType, false)
          : schema.add(tops.get(i), DataTypes.createArrayType(DataTypes.FloatType, false), false,
              new MetadataBuilder().putLongArray(RowForm.SHAPE, shape).build());
    }
    return schema;
  }

  /** A file's rows, in a task, from a copy on its disk. */
  private static final class Rows implements Iterator<Row> {
    private final Entry entry;
    private final List<String> tops;
    private final long[][] shapes;
    private final Hdf5 file;
    private final long rows;
    private long next;

    /** {@code wanted}: the form that its rows must have, "" for any. */
    Rows(Entry entry, List<String> tops, String wanted, Configuration conf) throws IOException {
      this.entry = entry;
      this.tops = tops;
      TaskFolder folder = new TaskFolder(SparkInternals.localFolder());
      SourceFiles.closeAfterTask(folder);
      java.nio.file.Path copy = folder.path().resolve("rows.h5");
      Path from = new Path(entry.path);
      from.getFileSystem(conf).copyToLocalFile(false, from, new Path(copy.toUri()), true);
      file = new Hdf5(copy);
      SourceFiles.closeAfterTask(file); // before the folder: the last is the first
      shapes = tops.stream().map(this::shape).toArray(long[][]::new);
      rows = shapes[0][0];
      for (int i = 1; i < shapes.length; i++) {
        if (shapes[i][0] == rows) continue;
        throw fault("dataset " + tops.get(i) + " has " + shapes[i][0] + " rows, but " + tops.get(0)
            + " has " + rows + ": make them equal");
      }
      if (wanted.isEmpty() || wanted.equals(form())) return;
      throw fault("its rows have the sizes " + form() + " and those of the first file " + wanted
          + ": make them equal");
    }

    /** The sizes of a row of each top: "1,28,28;" for an image and a number. */
    String form() {
      List<String> forms = new ArrayList<>();
      for (long[] shape : shapes) {
        forms.add(String.join(",", Arrays.stream(shape).skip(1).mapToObj(Long::toString).toList()));
      }
      return String.join(";", forms);
    }

    @Override
    public boolean hasNext() {
      return next < rows;
    }

    @Override
    public Row next() {
      if (!hasNext()) throw new NoSuchElementException();
      Object[] cells = new Object[1 + shapes.length];
      cells[0] = entry.place + ":" + next;
      for (int i = 0; i < shapes.length; i++) {
        int size = (int) Arrays.stream(shapes[i]).skip(1).reduce(1, Math::multiplyExact);
        float[] values = new float[size];
        file.read(tops.get(i), next * size, values);
        cells[1 + i] = shapes[i].length == 1 ? (Object) values[0] : values;
      }
      next++;
      return RowFactory.create(cells);
    }

    private long[] shape(String dataset) {
      long[] shape = file.shape(dataset);
      if (shape.length == 0) throw fault("dataset " + dataset + " is a single number: axis 0 is the rows");
      return shape;
    }

    private UncheckedIOException fault(String what) {
      return new UncheckedIOException(new IOException(entry.path + ": " + what));
    }
  }
}
