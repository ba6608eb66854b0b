// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.pixels;

import cafetiere.spark.files.SourceOptions;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.TableScan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.collection.JavaConverters;
import scala.collection.immutable.Map;

/** The images of some files, with the columns of CaffeOnSpark's ImageDataFrame. */
@SuppressWarnings("deprecation") // JavaConverters: what Scala 2.13 has in its place, 2.12 lacks
final class PixelTable extends BaseRelation implements TableScan {
  private final SQLContext context;
  private final String path;
  private final PixelForm form;
  private final ImageSize size;

  private PixelTable(SQLContext context, String path, PixelForm form, ImageSize size) {
    this.context = context;
    this.path = path;
    this.form = form;
    this.size = size;
  }

  static BaseRelation of(SQLContext context, Map<String, String> given) {
    SourceOptions options = new SourceOptions("pixels", JavaConverters.mapAsJavaMap(given),
        "form", "channels", "height", "width");
    PixelForm form = PixelForm.of(options.get("form", "text"));
    return new PixelTable(context, options.path(), form, new ImageSize(number(options, "channels"),
        number(options, "height"), number(options, "width")));
  }

  @Override
  public SQLContext sqlContext() {
    return context;
  }

  @Override
  public StructType schema() {
    return new StructType().add("label", DataTypes.FloatType, false)
        .add("channels", DataTypes.IntegerType, false)
        .add("height", DataTypes.IntegerType, false).add("width", DataTypes.IntegerType, false)
        .add("data", DataTypes.BinaryType)
        .add("float_data", DataTypes.createArrayType(DataTypes.FloatType, false));
  }

  @Override
  public RDD<Row> buildScan() {
    return form.read(context.sparkContext(), path, size).rdd();
  }

  private static int number(SourceOptions options, String name) {
    String text = options.get(name, "0");
    if (text.matches("\\d{1,9}")) return Integer.parseInt(text);
    throw new IllegalArgumentException("option " + name + " is '" + text + "': give a number");
  }
}
