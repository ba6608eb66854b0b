// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.netfiles;

import cafetiere.spark.PreflightException;
import cafetiere.spark.internal.NamedColumn;
import cafetiere.spark.plan.SourceLayer;
import java.awt.image.BufferedImage;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import javax.imageio.ImageIO;
import org.apache.spark.ml.linalg.Vector;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.Seq;

/**
 * What a column holds in each row, as far as a net has to know.
 *
 * @param shape the sizes of a row; none for a single number
 * @param isEncoded whether it holds image files, which are read as images of that shape
 */
record RowForm(List<Integer> shape, boolean isEncoded) {
  /** In a column's metadata: the sizes of a row, where its rows do not tell them. */
  static final String SHAPE = "shape";
  private static final List<String> SIZES = List.of("channels", "height", "width");
  private static final List<String> OF_IMAGE = List.of("nChannels", "height", "width");

  /** Judges by a table's first row. */
  static RowForm of(Dataset<Row> rows, String column, SourceLayer layer) {
    StructType schema = rows.schema();
    if (!Arrays.asList(schema.fieldNames()).contains(column)) {
      return new RowForm(List.of(), false); // what is missing is told with the other columns
    }
    StructField field = schema.apply(column);
    if (field.metadata().contains(SHAPE)) {
      long[] shape = field.metadata().getLongArray(SHAPE);
      return new RowForm(Arrays.stream(shape).mapToObj(Math::toIntExact).toList(), false);
    }
    List<Row> first = rows.filter(NamedColumn.of(column).isNotNull()).takeAsList(1);
    if (first.isEmpty()) {
      throw refused(layer, column, "the table has no row with a value in it");
    }
    Row row = first.get(0);
    Object value = row.get(schema.fieldIndex(column));
    if (value instanceof byte[] bytes) return ofBytes(bytes, row, column, layer);
    if (value instanceof Row struct) return ofStruct(struct, column, layer);
    if (value instanceof Vector vector) return ofNumbers(vector.size(), row, layer);
    if (value instanceof Seq<?> array) return ofNumbers(array.size(), row, layer);
    return new RowForm(List.of(), false);
  }

  private static RowForm ofBytes(byte[] bytes, Row row, String column, SourceLayer layer) {
    if (isImageFile(bytes)) return ofImageFile(bytes, column, layer);
    List<Integer> sizes = sizes(row, SIZES);
    if (product(sizes) == bytes.length) return new RowForm(sizes, false);
    throw refused(layer, column, "its " + bytes.length + " bytes are no JPEG or PNG, and the table"
        + " has no columns channels, height and width that tell how pixels lie in them");
  }

  /** Spark's image, or CaffeOnSpark's: an image file with its size. */
  private static RowForm ofStruct(Row struct, String column, SourceLayer layer) {
    List<String> fields = Arrays.asList(struct.schema().fieldNames());
    if (fields.containsAll(OF_IMAGE)) return new RowForm(sizes(struct, OF_IMAGE), false);
    if (fields.contains("image") && struct.getAs("image") instanceof byte[] bytes) {
      return ofImageFile(bytes, column, layer);
    }
    throw refused(layer, column, "it holds no image");
  }

  private static RowForm ofNumbers(int count, Row row, SourceLayer layer) {
    List<Integer> sizes = sizes(row, SIZES);
    if (product(sizes) == count) return new RowForm(sizes, false);
    boolean isPlain = layer.type().equals("HDF5Data");
    return new RowForm(isPlain ? List.of(count) : List.of(count, 1, 1), false);
  }

  /** The size is that of the first image, unless the layer has images made to fit. */
  private static RowForm ofImageFile(byte[] bytes, String column, SourceLayer layer) {
    BufferedImage image;
    try {
      image = ImageIO.read(new ByteArrayInputStream(bytes));
    } catch (IOException e) {
      throw refused(layer, column, "its first image cannot be read: " + e.getMessage());
    }
    if (image == null) throw refused(layer, column, "its first image is no JPEG or PNG");
    int stored = image.getColorModel().getNumColorComponents() == 1 ? 1 : 3;
    int channels = layer.forcedChannels() > 0 ? layer.forcedChannels() : stored;
    int height = layer.number("height") > 0 ? layer.number("height") : image.getHeight();
    int width = layer.number("width") > 0 ? layer.number("width") : image.getWidth();
    return new RowForm(List.of(channels, height, width), true);
  }

  private static boolean isImageFile(byte[] bytes) {
    int head = bytes.length < 4 ? 0
        : (bytes[0] & 0xff) << 24 | (bytes[1] & 0xff) << 16 | (bytes[2] & 0xff) << 8 | bytes[3] & 0xff;
    boolean isJpeg = head >>> 8 == 0xffd8ff;
    boolean isPng = head == 0x89504e47;
    return isJpeg || isPng || head == 0x52494646; // WebP
  }

  /** Those that a row tells; empty where one is missing. */
  private static List<Integer> sizes(Row row, List<String> names) {
    List<String> fields = Arrays.asList(row.schema().fieldNames());
    if (!fields.containsAll(names)) return List.of();
    return names.stream().map(name -> row.get(row.fieldIndex(name)))
        .map(size -> size instanceof Number number ? number.intValue() : 0).toList();
  }

  private static long product(List<Integer> sizes) {
    return sizes.stream().mapToLong(Integer::longValue).reduce(sizes.isEmpty() ? 0 : 1, (a, b) -> a * b);
  }

  private static PreflightException refused(SourceLayer layer, String column, String why) {
    return new PreflightException(List.of("layer '" + layer.name() + "' (" + layer.type()
        + ") is to be fed by column '" + column + "', and " + why
        + ": add them, or replace the layer by one of type MemoryData"));
  }
}
