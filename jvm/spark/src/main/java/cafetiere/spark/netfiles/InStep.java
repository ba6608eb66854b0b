// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.netfiles;

import cafetiere.spark.PreflightException;
import cafetiere.spark.internal.NamedColumn;
import cafetiere.spark.plan.SourceLayer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.function.Function2;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructType;

/** Layers that read files of their own, record beside record, as Caffe's cursors go. */
final class InStep {
  private static final String PLACE = "cafetiere place";

  private InStep() {}

  /**
   * A row for the n-th record of each table: the first one's {@code id}, and a column for each top, by its
   * name. Refused unless all have as many records.
   */
  static FileTable table(SparkSession spark, List<SourceLayer> layers, List<FileTable> tables) {
    List<Long> counts = new ArrayList<>();
    Dataset<Row> joined = null;
    for (int i = 0; i < layers.size(); i++) {
      Dataset<Row> rows = numbered(spark, columns(layers.get(i), tables.get(i), i == 0), counts);
      joined = joined == null ? rows : joined.join(rows, PLACE);
      if (counts.get(i).equals(counts.get(0))) continue;
      throw new PreflightException(List.of("layer '" + layers.get(0).name() + "' has " + counts.get(0)
          + " records in " + layers.get(0).source() + " and layer '" + layers.get(i).name() + "' has "
          + counts.get(i) + " in " + layers.get(i).source() + ": their n-th records go together, so"
          + " make the numbers equal, or one table of both and give it to fit() or with -trainData,"
          + " -testData"));
    }
    return new FileTable(joined.drop(PLACE), top(layers, "features"), top(layers, "label"),
        tables.stream().anyMatch(FileTable::isResized));
  }

  private static String top(List<SourceLayer> layers, String role) {
    return layers.stream().flatMap(layer -> layer.tops(role).stream()).findFirst()
        .orElse(FileTable.LABEL);
  }

  /** The columns of a layer's tops, by these, which keep the sizes that columns beside them tell. */
  private static Dataset<Row> columns(SourceLayer layer, FileTable table, boolean hasId) {
    List<Column> columns = new ArrayList<>();
    if (hasId) columns.add(functions.col(FileTable.ID));
    List<String> tops = layer.tops();
    for (int i = 0; i < tops.size(); i++) {
      String from = i == 0 ? table.data() : i == 1 ? table.label() : tops.get(i);
      RowForm form = RowForm.of(table.rows(), from, layer);
      long[] shape = form.shape().stream().mapToLong(Integer::longValue).toArray();
      Metadata sizes = form.isEncoded() || shape.length == 0 ? Metadata.empty()
          : new MetadataBuilder().putLongArray(RowForm.SHAPE, shape).build();
      columns.add(NamedColumn.of(from).as(tops.get(i), sizes));
    }
    return table.rows().select(columns.toArray(new Column[0]));
  }

  /** With the places of the rows, in the order of the files; adds their number to {@code counts}. */
  private static Dataset<Row> numbered(
      SparkSession spark, Dataset<Row> table, List<Long> counts) {
    JavaRDD<Row> rows = table.javaRDD();
    List<Long> sizes = rows.mapPartitions(part -> Collections.singleton(size(part)).iterator()).collect();
    long[] starts = new long[sizes.size() + 1];
    for (int i = 0; i < sizes.size(); i++) starts[i + 1] = starts[i] + sizes.get(i);
    counts.add(starts[sizes.size()]);
    Function2<Integer, Iterator<Row>, Iterator<Row>> number =
        (part, from) -> new Numbered(from, starts[part]);
    StructType schema = table.schema().add(PLACE, DataTypes.LongType, false);
    return spark.createDataFrame(rows.mapPartitionsWithIndex(number, false), schema);
  }

  private static long size(Iterator<Row> rows) {
    long size = 0;
    for (; rows.hasNext(); rows.next()) size++;
    return size;
  }

  /** Rows with their places behind their cells. */
  private static final class Numbered implements Iterator<Row> {
    private final Iterator<Row> rows;
    private long next;

    Numbered(Iterator<Row> rows, long first) {
      this.rows = rows;
      this.next = first;
    }

    @Override
    public boolean hasNext() {
      return rows.hasNext();
    }

    @Override
    public Row next() {
      Row row = rows.next();
      Object[] cells = new Object[row.size() + 1];
      Arrays.setAll(cells, i -> i < row.size() ? row.get(i) : (Object) next);
      next++;
      return RowFactory.create(cells);
    }
  }
}
