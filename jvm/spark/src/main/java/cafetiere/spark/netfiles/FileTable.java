// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.netfiles;

import cafetiere.spark.PreflightException;
import cafetiere.spark.plan.SourceLayer;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/**
 * The table of what a layer's own files hold. Its columns are {@code id}, and {@code data} and {@code
 * label} or, of HDF5 files and of several layers, those of the tops.
 *
 * @param rows the table
 * @param data the column for the features
 * @param label that for the label
 * @param isResized whether the layer has its images made to fit
 */
public record FileTable(Dataset<Row> rows, String data, String label, boolean isResized) {
  /** The column that identifies a row. */
  public static final String ID = "id";
  static final String DATA = "data";
  static final String LABEL = "label";

  /** Rows with an image and its label. */
  public static FileTable ofImages(Dataset<Row> rows, boolean isResized) {
    return new FileTable(rows, DATA, LABEL, isResized);
  }

  /**
   * Opens what the layers of a net's phase name, at Hadoop paths; several in step.
   *
   * @param partitions the number of tasks that read a database, "" for Spark's own
   */
  public static FileTable open(SparkSession spark, List<SourceLayer> layers, String partitions) {
    if (layers.isEmpty() || !layers.stream().allMatch(SourceLayer::isOfFiles)) {
      throw refused("the net has " + layers.size() + " data layers, of which not each has files of"
          + " its own: make one table of what they read");
    }
    List<FileTable> tables =
        layers.stream().map(layer -> open(spark, layer, partitions)).toList();
    return tables.size() == 1 ? tables.get(0) : InStep.table(spark, layers, tables);
  }

  private static FileTable open(SparkSession spark, SourceLayer layer, String partitions) {
    if (layer.source().isEmpty()) throw refused("layer '" + layer.name() + "' names no source");
    return switch (layer.type()) {
      case "Data" -> ofDatabase(spark, layer, partitions);
      case "ImageData" -> ofImages(ImageList.table(spark, layer.source(),
          layer.field("root_folder")), layer.number("height") > 0);
      case "HDF5Data" -> ofHdf5(spark, layer);
      default -> throw refused("layer '" + layer.name() + "' (" + layer.type() + ") reads "
          + layer.source() + ", which Spark cannot: make a table of it, with a column for each of"
          + " its tops");
    };
  }

  private static FileTable ofDatabase(SparkSession spark, SourceLayer layer, String partitions) {
    if (layer.field("backend").equals("LMDB")) return ofLmdb(spark, layer.source(), partitions);
    return ofRecords(spark.read().format("leveldb").load(layer.source()));
  }

  private static FileTable ofHdf5(SparkSession spark, SourceLayer layer) {
    List<String> tops = layer.tops();
    return new FileTable(Hdf5List.table(spark, layer.source(), tops), tops.get(0),
        tops.size() > 1 ? tops.get(1) : LABEL, false);
  }

  /** The records of a database; with their numbers where they have these in place of bytes. */
  public static FileTable ofLmdb(SparkSession spark, String path, String partitions) {
    return ofRecords(spark.read().format("lmdb").option("partitions", partitions).load(path));
  }

  private static FileTable ofRecords(Dataset<Row> rows) {
    List<Row> first = rows.select(DATA, "float_data").takeAsList(1);
    boolean isOfNumbers = !first.isEmpty() && first.get(0).isNullAt(0);
    return ofImages(
        isOfNumbers ? rows.withColumn(DATA, functions.col("float_data")) : rows, false);
  }

  private static PreflightException refused(String why) {
    return new PreflightException(List.of(why + " and give it to fit() or with -trainData, -testData"));
  }
}
