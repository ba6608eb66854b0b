// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.files;

import cafetiere.spark.util.HadoopFiles;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveInputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;

/**
 * The files in tars, which may be compressed. A task reads a tar, from its begin to its end.
 *
 * @param tars their paths
 * @param labels the path of a text with lines of a file's name and its label; "" for none
 */
record TarRows(List<String> tars, String labels) implements PathSource.Rows {
  private static final StructType SCHEMA = new StructType()
      .add("id", DataTypes.StringType).add("label", DataTypes.IntegerType)
      .add("data", DataTypes.BinaryType);

  static TarRows open(SQLContext context, Map<String, String> given) {
    SourceOptions options = new SourceOptions("tar", given, "labels");
    Configuration conf = context.sparkContext().hadoopConfiguration();
    List<String> tars = SourceFiles.find(options.path(), conf, ".tar", ".tar.gz", ".tgz").stream()
        .map(file -> file.getPath().toString()).toList();
    return new TarRows(tars, options.get("labels", ""));
  }

  @Override
  public StructType schema() {
    return SCHEMA;
  }

  @Override
  public RDD<Row> rows(JavaSparkContext sc, SerializableConfiguration conf) {
    if (labels.isEmpty()) return rows(sc, tar -> new Entries(tar, null, conf.value()));
    Broadcast<Map<String, Integer>> classes = sc.broadcast(classes(conf.value()));
    return rows(sc, tar -> new Entries(tar, classes.value(), conf.value()));
  }

  private RDD<Row> rows(JavaSparkContext sc, FlatMapFunction<String, Row> entries) {
    return sc.parallelize(tars, tars.size()).flatMap(entries).rdd();
  }

  private Map<String, Integer> classes(Configuration conf) {
    Map<String, Integer> classes = new HashMap<>();
    int number = 0;
    for (String line : HadoopFiles.readText(labels, conf).split("\n")) {
      number++;
      if (line.isBlank()) continue;
      String[] words = line.strip().split("\\s+(?=\\S+$)");
      if (words.length != 2 || !words[1].matches("\\d{1,9}")) {
        throw SourceFiles.fault(labels,
            "line " + number + ": a file's name and the number of its class are needed");
      }
      classes.put(words[0], Integer.valueOf(words[1]));
    }
    return classes;
  }

  /** The files of a tar as rows, in a task; {@code classes} is null where there are no labels. */
  private static final class Entries implements Iterator<Row> {
    private final String tar;
    private final Map<String, Integer> classes;
    private final TarArchiveInputStream in;
    private TarArchiveEntry entry;

    Entries(String tar, Map<String, Integer> classes, Configuration conf) {
      this.tar = tar;
      this.classes = classes;
      try {
        in = new TarArchiveInputStream(
            new BufferedInputStream(HadoopFiles.open(new Path(tar), conf)));
        SourceFiles.closeAfterTask(in);
        entry = nextFile();
      } catch (IOException e) {
        throw SourceFiles.unread(tar, e);
      }
    }

    private TarArchiveEntry nextFile() throws IOException {
      TarArchiveEntry next = in.getNextTarEntry();
      while (next != null && !next.isFile()) next = in.getNextTarEntry();
      return next;
    }

    @Override
    public boolean hasNext() {
      return entry != null;
    }

    @Override
    public Row next() {
      if (entry == null) throw new NoSuchElementException();
      String name = entry.getName();
      try {
        if (entry.getSize() > Integer.MAX_VALUE - Long.BYTES) {
          throw SourceFiles.fault(tar, "has " + name + " of 2 GiB or more: leave it out");
        }
        byte[] data = in.readNBytes((int) entry.getSize());
        if (data.length < entry.getSize()) {
          throw SourceFiles.fault(tar, "ends within " + name + ": it is cut short");
        }
        entry = nextFile();
        return RowFactory.create(name, label(name), data);
      } catch (IOException e) {
        throw SourceFiles.unread(tar + ", in or behind " + name, e);
      }
    }

    /** Labels may have a file's whole name or its last part. */
    private Integer label(String name) {
      if (classes == null) return null;
      Integer label = classes.getOrDefault(name, classes.get(name.replaceFirst(".*/", "")));
      if (label != null) return label;
      throw SourceFiles.fault(tar, "has " + name + ", and the labels have no line for it");
    }
  }
}
