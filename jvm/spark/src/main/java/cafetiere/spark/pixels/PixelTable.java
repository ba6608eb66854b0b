// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.pixels;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.TableScan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;

/** The images of some files, with the columns of CaffeOnSpark's ImageDataFrame. */
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

  static BaseRelation of(SQLContext context, Map<String, String> options) {
    String path = option(options, "path", "");
    if (path.isEmpty()) throw new IllegalArgumentException("give the files with load(PATH)");
    PixelForm form = PixelForm.of(option(options, "form", "text"));
    return new PixelTable(context, path, form, new ImageSize(number(options, "channels"),
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

  private static int number(Map<String, String> options, String name) {
    String text = option(options, name, "0");
    if (text.matches("\\d{1,9}")) return Integer.parseInt(text);
    throw new IllegalArgumentException("option " + name + " is '" + text + "': give a number");
  }

  private static String option(Map<String, String> options, String name, String fallback) {
    scala.Option<String> given = options.get(name);
    return given.isDefined() ? given.get() : fallback;
  }
}
