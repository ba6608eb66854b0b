// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.feed;

import java.util.List;
import org.apache.spark.ml.linalg.SQLDataTypes;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;

/**
 * The column types that can be fed to a net. Each knows its name in the engine and how to encode
 * its value from Spark's binary rows, where bulk memory is copied.
 */
public enum ColumnType {
  BOOLEAN("u8", (row, i, out) -> out.uint8(row.getBoolean(i) ? 1 : 0)),
  BYTE("i32", (row, i, out) -> out.int32(row.getByte(i))),
  SHORT("i32", (row, i, out) -> out.int32(row.getShort(i))),
  INT("i32", (row, i, out) -> out.int32(row.getInt(i))),
  LONG("i64", (row, i, out) -> out.int64(row.getLong(i))),
  FLOAT("f32", (row, i, out) -> out.float32(row.getFloat(i))),
  DOUBLE("f64", (row, i, out) -> out.float64(row.getDouble(i))),
  /** As a double; its writer is made for its precision and scale. */
  DECIMAL("f64", null),
  /** Days since 1970. */
  DATE("i32", (row, i, out) -> out.int32(row.getInt(i))),
  /** Microseconds since 1970. */
  TIMESTAMP("i64", (row, i, out) -> out.int64(row.getLong(i))),
  STRING("string", UnsafeValues::bytes),
  /** Each with an end of its own. */
  TEXTS("string", UnsafeValues::texts),
  BINARY("u8", UnsafeValues::bytes),
  INTS("i32", (row, i, out) -> UnsafeValues.array(row, i, Integer.BYTES, out)),
  LONGS("i64", (row, i, out) -> UnsafeValues.array(row, i, Long.BYTES, out)),
  FLOATS("f32", (row, i, out) -> UnsafeValues.array(row, i, Float.BYTES, out)),
  DOUBLES("f64", (row, i, out) -> UnsafeValues.array(row, i, Double.BYTES, out)),
  /** As doubles; their writer is made for their precision and scale. */
  DECIMALS("f64", null),
  VECTOR("f64", UnsafeValues::vector),
  /** Spark's image as an image file, which knows its size. */
  IMAGE_FILE("u8", UnsafeValues::imageFile),
  /** Spark's image: pixels. */
  IMAGE("u8", UnsafeValues::image),
  /** CaffeOnSpark's ENCODED_IMAGE_WITH_DIM: the bytes of an image file and its size. */
  SIZED_IMAGE("u8", UnsafeValues::sizedImage);

  /** Encodes one value of a binary row. */
  interface Writer {
    void write(UnsafeRow row, int ordinal, Chunk out);
  }

  private static final List<String> IMAGE_FIELDS =
      List.of("origin", "height", "width", "nChannels", "mode", "data");
  private static final List<String> SIZED_IMAGE_FIELDS = List.of("image", "height", "width");

  private final String engineName;
  private final Writer writer;

  ColumnType(String engineName, Writer writer) {
    this.engineName = engineName;
    this.writer = writer;
  }

  /** The type's name in the engine's schema. */
  String engineName() {
    return engineName;
  }

  /** Whether its bytes may be those of an image file. */
  boolean mayBeEncoded() {
    return this == BINARY || this == SIZED_IMAGE;
  }

  /** What encodes its values, which are of this Spark type. */
  Writer writer(DataType type) {
    if (this == DECIMALS) {
      DecimalType element = (DecimalType) ((ArrayType) type).elementType();
      return (row, i, out) -> UnsafeValues.decimals(row, i, element, out);
    }
    if (!(type instanceof DecimalType decimal)) return writer;
    int precision = decimal.precision();
    int scale = decimal.scale();
    return (row, i, out) -> out.float64(row.getDecimal(i, precision, scale).toDouble());
  }

  /** The column type for a Spark type; null if values of it cannot be fed. */
  static ColumnType of(DataType type) {
    if (type instanceof ArrayType array) return ofArray(array.elementType());
    if (type instanceof StructType struct) return ofStruct(struct);
    if (type.equals(SQLDataTypes.VectorType())) return VECTOR;
    if (type.equals(DataTypes.BooleanType)) return BOOLEAN;
    if (type.equals(DataTypes.ByteType)) return BYTE;
    if (type.equals(DataTypes.ShortType)) return SHORT;
    if (type.equals(DataTypes.IntegerType)) return INT;
    if (type.equals(DataTypes.LongType)) return LONG;
    if (type.equals(DataTypes.FloatType)) return FLOAT;
    if (type.equals(DataTypes.DoubleType)) return DOUBLE;
    if (type.equals(DataTypes.StringType)) return STRING;
    if (type.equals(DataTypes.BinaryType)) return BINARY;
    if (type instanceof DecimalType) return DECIMAL;
    return null;
  }

  /** Whether cells of a TableData are image files, or images. */
  public static boolean isImage(DataType type) {
    ColumnType cell = ofCell(type);
    return cell == BINARY || cell == IMAGE_FILE || cell == SIZED_IMAGE;
  }

  /** The same for a TableData, which also knows dates and arrays of text. */
  static ColumnType ofCell(DataType type) {
    if (type instanceof StructType struct && ofStruct(struct) == IMAGE) return IMAGE_FILE;
    boolean isArray = type instanceof ArrayType;
    if (isArray && ((ArrayType) type).elementType().equals(DataTypes.StringType)) return TEXTS;
    if (type.equals(DataTypes.DateType)) return DATE;
    if (type.equals(DataTypes.TimestampType)) return TIMESTAMP;
    if (type.equals(DataTypes.TimestampNTZType)) return TIMESTAMP;
    return of(type);
  }

  private static ColumnType ofArray(DataType element) {
    if (element.equals(DataTypes.IntegerType)) return INTS;
    if (element.equals(DataTypes.LongType)) return LONGS;
    if (element.equals(DataTypes.FloatType)) return FLOATS;
    if (element.equals(DataTypes.DoubleType)) return DOUBLES;
    return element instanceof DecimalType ? DECIMALS : null;
  }

  private static ColumnType ofStruct(StructType struct) {
    List<String> fields = List.of(struct.fieldNames());
    if (fields.equals(IMAGE_FIELDS)) return IMAGE;
    boolean isSized = fields.equals(SIZED_IMAGE_FIELDS)
        && struct.fields()[0].dataType().equals(DataTypes.BinaryType);
    return isSized ? SIZED_IMAGE : null;
  }
}
